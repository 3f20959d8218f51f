"""A database in memory that answers as the SQL does; its clock is right where workers' are not."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlease.errors import CallRefused
from fairlease.model import ClaimAnswer, ClaimStatus, Heartbeat, Settled
from fairlease.simulate.choosing import Slots
from fairlease.simulate.outcomes import settle_row
from fairlease.simulate.tables import Queue, Row, Slot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlease.model import ClaimRequest, Delivery, Outcome

MOST_PER_CLAIM = 500


@dataclass(slots=True)
class Database:
    """One method per function of `pgmq_public`; each runs at once, at the instant `now()`."""

    now: Callable[[], float]
    queues: dict[str, Queue] = field(default_factory=dict)
    slots: Slots = field(default_factory=Slots)
    # Answers to the next claims that no state of this database gives, such as a locked row.
    scripted: list[ClaimAnswer] = field(default_factory=list)
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def attach(self, *names: str) -> None:
        for name in names:
            self.queues.setdefault(name, Queue())

    def send(self, queue: str, org: str, body: Any, delay_seconds: float = 0.0) -> int:
        row = Row(next(self._ids), org, body, self.now() + delay_seconds)
        self.queue(queue).put(row)
        return row.msg_id

    def queue(self, name: str) -> Queue:
        if name not in self.queues:
            raise CallRefused(f"queue_name: {name!r} is not attached; attach it", code="P0001")
        return self.queues[name]

    def claim(self, request: ClaimRequest) -> ClaimAnswer:
        _check(request)
        now, queue = self.now(), self.queue(request.queue)
        if self.scripted:
            return self.scripted.pop(0)
        if request.max_per_org <= 0 or request.global_cap <= 0:
            return ClaimAnswer(ClaimStatus.NO_CAPACITY, cause="stopped")
        own = self.slots.own(request.holder, now)
        org = self.slots.choose(request, queue, own, now)
        if isinstance(org, ClaimAnswer):
            return org
        state = self.slots.state_of(org)
        count = 1 if state.tripped else min(request.n, MOST_PER_CLAIM, state.starts_left(now))
        rows = queue.take(org, count, now, now + request.sleep_seconds)
        state.start(len(rows), now)
        if state.tripped:
            state.probe = (rows[0].msg_id, rows[0].read_ct)
            state.probe_until = now + request.sleep_seconds
        expires_at = now + request.lease_ttl_seconds
        self.slots.by_holder[request.holder] = Slot(request.holder, request.queue, org, expires_at)
        if request.pin_org is None:
            queue.cursor = org
        return ClaimAnswer(ClaimStatus.CLAIMED, org, tuple(row.as_message() for row in rows))

    def settle_and_claim(self, request: ClaimRequest, outcomes: Sequence[Outcome]) -> ClaimAnswer:
        """`n = 0` settles only; then the status says nothing."""
        queue = self.queue(request.queue)
        settled = tuple(self._settle(queue, outcome) for outcome in outcomes)
        if request.n == 0:
            return ClaimAnswer(ClaimStatus.NO_DEMAND, settled=settled)
        claimed = self.claim(request)
        return ClaimAnswer(
            claimed.status,
            claimed.org,
            claimed.messages,
            claimed.cause,
            claimed.retry_after_ms,
            settled,
        )

    def heartbeat(
        self,
        queue_name: str,
        holder: str,
        ttl_seconds: float,
        sleep_seconds: float,
        deliveries: Sequence[Delivery],
    ) -> Heartbeat:
        """Deliveries are extended whether or not the slot lives; one that is over is left."""
        now, queue = self.now(), self.queue(queue_name)
        extended, lost, gone = set(), set(), set()
        for delivery in deliveries:
            row = queue.rows.get(delivery.msg_id)
            if row is None:
                gone.add(delivery.msg_id)
            elif row.read_ct != delivery.read_ct or row.is_over:
                lost.add(delivery.msg_id)
            else:
                self._extend(queue, row, now + sleep_seconds)
                extended.add(delivery.msg_id)
        alive = self.renew(queue_name, holder, ttl_seconds)
        return Heartbeat(alive, frozenset(extended), frozenset(lost), frozenset(gone))

    def renew(self, queue_name: str, holder: str, ttl_seconds: float) -> bool:
        slot = self.slots.own(holder, self.now())
        if slot is None or slot.queue != queue_name:
            return False
        slot.expires_at = self.now() + ttl_seconds
        return True

    def release(self, queue_name: str, holder: str) -> bool:
        slot = self.slots.by_holder.get(holder)
        if slot is None or slot.queue != queue_name:
            return False
        del self.slots.by_holder[holder]
        return slot.expires_at > self.now()

    def archive(self, queue_name: str, msg_id: int) -> bool:
        """Unfenced, as the one of pgmq."""
        queue = self.queue(queue_name)
        row = queue.rows.pop(msg_id, None)
        if row is not None:
            queue.archive[msg_id] = row
        return row is not None

    def _settle(self, queue: Queue, outcome: Outcome) -> Settled:
        row = queue.rows.get(outcome.delivery.msg_id)
        state = self.slots.state_of(row.org) if row is not None else None
        return settle_row(queue, row, state, outcome, self.now())

    def _extend(self, queue: Queue, row: Row, visible_at: float) -> None:
        if row.read_ct - row.closed_count > 1:
            row.begin()
        state = self.slots.state_of(row.org)
        if state.probe == (row.msg_id, row.read_ct):
            state.probe_until = visible_at
        queue.move(row, max(row.visible_at, visible_at))


def _check(request: ClaimRequest) -> None:
    wrong = None
    if not request.holder:
        wrong = "holder: it is empty; give the name of the run"
    elif request.n < 1:
        wrong = f"n: {request.n}; give 1 or more"
    elif request.sleep_seconds < 0:
        wrong = f"sleep_seconds: {request.sleep_seconds}; give 0 or more"
    elif request.lease_ttl_seconds < 1:
        wrong = f"lease_ttl_seconds: {request.lease_ttl_seconds}; give 1 or more"
    elif request.pin_org is not None and not request.pin_org:
        wrong = "pin_org: it is empty; leave it out"
    if wrong is not None:
        raise CallRefused(wrong, code="P0001")
