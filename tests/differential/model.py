"""The allocator as its specification reads: lists, dicts, full scans, one caller at a time.

Nothing here is fast and nothing is clever, so that it can be checked by reading. Times are whole
microseconds, rates are fractions. It shares no code and no data with the SQL.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .arguments import check_claim, check_slot_arguments
from .deliveries import Deliveries
from .orgs import fold, org_of
from .records import Message, Queue, Slot
from .values import MAX_N, MAX_N_PLAIN, Claim, Limits, Outcome, Unspecified, ms, seconds

if TYPE_CHECKING:
    from .circuit import Circuit


def spacing(limits: Limits) -> Fraction:
    """Microseconds from one start to the next."""
    assert limits.starts_per_minute is not None
    return Fraction(seconds(60), limits.starts_per_minute)


def byte_order(org: str) -> bytes:
    return org.encode()


class Model(Deliveries):
    def __init__(self, queues: dict[str, str]) -> None:
        """`queues` maps each attached queue to what its successes do: archive or delete."""
        self.now = 0
        self.queues = {name: Queue(on_success) for name, on_success in queues.items()}
        self.slots: list[Slot] = []
        self.limits: dict[str, Limits] = {}
        self.arrival: dict[str, Fraction] = {}
        self.circuits: dict[str, Circuit] = {}

    # -- time and operators

    def advance(self, milliseconds: int) -> None:
        self.now += ms(milliseconds)

    def limit(self, org: str, limits: Limits) -> None:
        org = fold(org)
        before = self.limits.get(org, Limits())
        self.limits[org] = limits
        if before.starts_per_minute != limits.starts_per_minute:
            self.rebase(org, before, limits)

    def rebase(self, org: str, before: Limits, after: Limits) -> None:
        """A rate that changes keeps what is owed: so many starts, at the new rate."""
        arrival = self.arrival.pop(org, Fraction(0))
        if before.starts_per_minute and after.starts_per_minute and arrival > self.now:
            owed = (arrival - self.now) / spacing(before)
            self.arrival[org] = self.now + owed * spacing(after)

    # -- sending

    def send(self, queue: str, items: list[dict[str, Any]], delay_seconds: int) -> dict[str, Any]:
        ids, existing = [], []
        for index, item in enumerate(items):
            key = item.get("key")
            twin = next((m for m in self.queues[queue].messages if key and m.key == key), None)
            if twin is not None:
                existing.append(index)
                ids.append(twin.number)
                continue
            headers = dict(item.get("headers") or {})
            if item.get("org"):
                headers["x-org"] = item["org"]
            number = item["message"]["number"]
            org = org_of(item["message"], headers)
            vt = self.now + seconds(delay_seconds)
            self.queues[queue].messages.append(Message(number, org, key, vt))
            ids.append(number)
        return {"ids": ids, "existing": existing}

    # -- slots

    def live(self) -> list[Slot]:
        return [slot for slot in self.slots if slot.expires_at > self.now]

    def own(self, holder: str) -> Slot | None:
        return next((slot for slot in self.live() if slot.holder == holder), None)

    def others(self, holder: str, org: str | None = None) -> list[Slot]:
        return [s for s in self.live() if s.holder != holder and org in (None, s.org)]

    def renew(self, queue: str, holder: str, ttl_seconds: int) -> bool:
        check_slot_arguments(self.queues, queue, holder, ttl_seconds)
        slot = self.own(holder)
        if slot is None or slot.queue != queue:
            return False
        slot.expires_at = self.now + seconds(ttl_seconds)
        return True

    def release(self, queue: str, holder: str) -> bool | Unspecified:
        """Whether a slot went; of one that had lapsed, nothing is promised."""
        check_slot_arguments(self.queues, queue, holder, 1)
        mine = [s for s in self.slots if s.holder == holder and s.queue == queue]
        self.slots = [s for s in self.slots if s not in mine]
        if mine and mine[0].expires_at <= self.now:
            return Unspecified()
        return bool(mine)

    # -- claiming

    def claim(self, ask: Claim) -> dict[str, Any]:
        check_claim(self.queues, ask)
        return self.answer(replace(ask, n=min(ask.n, MAX_N_PLAIN)))

    def answer(self, ask: Claim) -> dict[str, Any]:
        queue = self.queues[ask.queue]
        if ask.max_per_org <= 0 or ask.global_cap <= 0:
            return refusal("no_capacity", "stopped")
        pin = ask.pin_org and fold(ask.pin_org)
        waiting = {m.org for m in queue.messages if m.vt <= self.now}
        if pin is not None:
            waiting &= {pin}
        if not waiting:
            return refusal("no_demand")
        seat = self.seat_for(ask, pinned=pin is not None)
        if seat is None:
            return refusal("no_capacity", "fleet_full")
        blocked = {org: self.why_not(ask, org, pinned=pin is not None) for org in waiting}
        able = [org for org in waiting if not blocked[org]]
        if not able:
            return refusal("org_capacity", *set().union(*blocked.values()))
        org = min(able, key=lambda org: self.turn(ask, queue, org))
        return self.serve(ask, org, seat, pinned=pin is not None)

    def turn(self, ask: Claim, queue: Queue, org: str) -> tuple[int, bool, bytes]:
        """Fewest slots of others first; among equals, in byte order after the cursor."""
        before_cursor = byte_order(org) <= byte_order(queue.cursor)
        return (len(self.others(ask.holder, org)), before_cursor, byte_order(org))

    def seat_for(self, ask: Claim, *, pinned: bool) -> int | None:
        """The seat to be in after this claim: S1. Gives up a slot above the cap, unless pinned."""
        own = self.own(ask.holder)
        if own is not None and own.seat <= ask.global_cap:
            return own.seat
        if own is not None and pinned:
            return None
        taken = {slot.seat for slot in self.others(ask.holder)}
        free = first_free(taken, ask.global_cap)
        if free is None and own is not None:
            self.slots.remove(own)
        return free

    def org_cap(self, ask: Claim, org: str) -> int:
        limits = self.limits.get(org, Limits())
        return ask.max_per_org if limits.max_per_org is None else limits.max_per_org

    def ordinal_for(self, ask: Claim, org: str, *, pinned: bool) -> int | None:
        """The ordinal to have in `org` after this claim: S2, over all queues."""
        cap = self.org_cap(ask, org)
        own = self.own(ask.holder)
        if own is not None and own.org == org:
            if own.ordinal <= cap:
                return own.ordinal
            if pinned:
                return None
        return first_free({slot.ordinal for slot in self.others(ask.holder, org)}, cap)

    def tokens(self, org: str) -> int | None:
        """How many starts the rate allows now; None: as many as there are."""
        limits = self.limits.get(org, Limits())
        if limits.starts_per_minute is None:
            return None
        each = spacing(limits)
        arrival = max(self.arrival.get(org, Fraction(0)), Fraction(self.now))
        return (self.now + limits.burst * each - arrival) // each

    def why_not(self, ask: Claim, org: str, *, pinned: bool) -> set[str]:
        causes = set()
        if self.ordinal_for(ask, org, pinned=pinned) is None:
            causes.add("org_limit")
        if self.limits.get(org, Limits()).paused:
            causes.add("paused")
        tokens = self.tokens(org)
        if tokens is not None and tokens < 1:
            causes.add("tokens")
        if org in self.circuits and not self.circuits[org].admits(self.now):
            causes.add("circuit")
        return causes

    def serve(self, ask: Claim, org: str, seat: int, *, pinned: bool) -> dict[str, Any]:
        queue = self.queues[ask.queue]
        ordinal = self.ordinal_for(ask, org, pinned=pinned)
        assert ordinal is not None
        circuit = self.circuits.get(org)
        probing = circuit is not None and circuit.is_half_open(self.now)
        count = min([ask.n, *filter(None, [self.tokens(org)]), *([1] if probing else [])])
        visible = [m for m in queue.messages if m.org == org and m.vt <= self.now]
        batch = sorted(visible, key=lambda m: (m.vt, m.number))[:count]
        for message in batch:
            message.read_ct += 1
            message.last_read_at = self.now
            message.vt = self.now + seconds(ask.sleep_seconds)
        if circuit is not None and probing:
            circuit.probe = (ask.queue, batch[0].number, batch[0].read_ct)
            circuit.probe_until = batch[0].vt
        self.charge(org, len(batch))
        self.slots = [slot for slot in self.slots if slot.holder != ask.holder]
        self.clear_lapsed(seat, org, ordinal)
        expires_at = self.now + seconds(ask.lease_ttl_seconds)
        self.slots.append(Slot(ask.holder, ask.queue, org, seat, ordinal, expires_at))
        if not pinned:
            queue.cursor = org
        return {
            "status": "claimed",
            "org": org,
            "causes": frozenset(),
            "messages": [delivered(message) for message in batch],
        }

    def clear_lapsed(self, seat: int, org: str, ordinal: int) -> None:
        self.slots = [
            s for s in self.slots if s.seat != seat and (s.org, s.ordinal) != (org, ordinal)
        ]

    def charge(self, org: str, starts: int) -> None:
        limits = self.limits.get(org, Limits())
        if limits.starts_per_minute is not None:
            arrival = max(self.arrival.get(org, Fraction(0)), Fraction(self.now))
            self.arrival[org] = arrival + starts * spacing(limits)

    def settle_and_claim(self, ask: Claim, outcomes: list[Outcome]) -> dict[str, Any]:
        if ask.n == 0:
            # The other arguments of the claim are not looked at: outcomes must not be lost to them.
            check_slot_arguments(self.queues, ask.queue, ask.holder, 1)
        else:
            check_claim(self.queues, ask)
        settled = [(o.number, self.settle(ask.queue, o)) for o in outcomes]
        if ask.n == 0:
            return {"settled": settled}
        return {"settled": settled, **self.answer(replace(ask, n=min(ask.n, MAX_N)))}

    # -- all that an onlooker may see

    def state(self) -> dict[str, Any]:
        return {
            "slots": sorted((s.holder, s.queue, s.org, s.expires_at) for s in self.live()),
            "queued": {
                name: sorted((m.number, m.org, m.read_ct, m.vt) for m in queue.messages)
                for name, queue in self.queues.items()
            },
            "archived": {name: sorted(q.archived) for name, q in self.queues.items()},
            "dead": {name: sorted(q.dead) for name, q in self.queues.items()},
            "open": {
                org: circuit.open_until
                for org, circuit in self.circuits.items()
                if circuit.open_until is not None
            },
            "kept": sorted(
                (name, m.number, m.closed_count, m.uncounted, m.begun_count)
                for name, queue in self.queues.items()
                for m in queue.messages
                if m.closed_count or m.begun_count
            ),
        }


def first_free(taken: set[int], cap: int) -> int | None:
    """The lowest place `p` with at most `cap - p` places taken above it: the rule of S1 and S2."""
    for place in range(1, cap + 1):
        if place not in taken and place + sum(1 for t in taken if t > place) <= cap:
            return place
    return None


def delivered(message: Message) -> dict[str, Any]:
    return {
        "number": message.number,
        "read_ct": message.read_ct,
        "vt": message.vt,
        "attempt": message.read_ct - message.uncounted,
        "crashes": message.begun_count,
    }


def refusal(status: str, *causes: str) -> dict[str, Any]:
    return {"status": status, "org": None, "causes": frozenset(causes), "messages": []}
