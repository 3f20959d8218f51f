"""Faults planted in the model: a comparison that misses one of these would miss it in the SQL."""

from __future__ import annotations

from .mutation import Edit, Mutant
from .sql_mutants import (
    ABOVE_CAP_PINNED,
    FENCED,
    FLEET,
    HALF_OPEN,
    KEYS,
    LAPSES,
    LEFT,
    ORDINALS_ABOVE,
    ORG_OVER_QUEUES,
    RATE,
    READ_ORDER,
    TURNS,
    UNCOUNTED,
)


def mutant(name: str, red: str, old: str, new: str) -> Mutant:
    return Mutant(name, red, (Edit("model", old, new),))


def of_delivery(name: str, red: str, old: str, new: str) -> Mutant:
    return Mutant(name, red, (Edit("deliveries", old, new),))


MODEL_MUTANTS = (
    mutant("pin ignored", "a pinned claim serves the pinned org or nothing",
        "waiting &= {pin}", "pass"),
    mutant("pin not folded", "an org is one whatever the case of its letters",
        "pin = ask.pin_org and fold(ask.pin_org)", "pin = ask.pin_org"),
    mutant("cap off by one", FLEET,
        "free = first_free(taken, ask.global_cap)", "free = first_free(taken, ask.global_cap + 1)"),
    mutant("places above not counted", "seats above are counted against a lower cap",
        "place + sum(1 for t in taken if t > place) <= cap", "place <= cap"),
    mutant("expiry ignored", LAPSES,
        "[slot for slot in self.slots if slot.expires_at > self.now]", "list(self.slots)"),
    mutant("expiry an instant late", LAPSES,
        "for slot in self.slots if slot.expires_at > self.now",
        "for slot in self.slots if slot.expires_at >= self.now"),
    mutant("own slot not reused", "a holder keeps its one slot",
        "if own is not None and own.seat <= ask.global_cap:", "if False:"),
    mutant("own slot counts against its org", "the holder's own slot does not put its org back",
        "return (len(self.others(ask.holder, org)),", 'return (len(self.others("", org)),'),
    mutant("pinned above the cap moves", ABOVE_CAP_PINNED,
        "if own is not None and pinned:", "if False:"),
    mutant("pinned above the org's cap moves", ORDINALS_ABOVE,
        "            if pinned:\n", "            if False:\n"),
    mutant("per-org cap counted per queue", ORG_OVER_QUEUES,
        "first_free({slot.ordinal for slot in self.others(ask.holder, org)}, cap)",
        "first_free({s.ordinal for s in self.others(ask.holder, org)"
        " if s.queue == ask.queue}, cap)"),
    mutant("global cap counted per queue", FLEET,
        "taken = {slot.seat for slot in self.others(ask.holder)}",
        "taken = {s.seat for s in self.others(ask.holder) if s.queue == ask.queue}"),
    mutant("an org's own cap ignored", "an org's own cap replaces the argument",
        "ask.max_per_org if limits.max_per_org is None else limits.max_per_org", "ask.max_per_org"),
    mutant("cursor not advanced", TURNS, "queue.cursor = org", "pass"),
    mutant("pinned claims move the cursor", "a pinned claim leaves the cursor alone",
        "        if not pinned:\n            queue.cursor",
        "        if True:\n            queue.cursor"),
    mutant("depth before breadth", "an org with fewer slots goes first",
        "(len(self.others(ask.holder, org)), before_cursor,", "(0, before_cursor,"),
    mutant("read by number", READ_ORDER, "key=lambda m: (m.vt, m.number)",
        "key=lambda m: m.number"),
    mutant("delayed messages read", "only what is visible is read",
        "if m.org == org and m.vt <= self.now]", "if m.org == org]"),
    mutant("paused org claimed", "a paused org is left alone",
        "if self.limits.get(org, Limits()).paused:", "if False:"),
    mutant("open circuit claimed", "an open circuit keeps its org out",
        "if org in self.circuits and", "if False and"),
    mutant("half-open lets more through", HALF_OPEN, "*([1] if probing else [])", ""),
    mutant("GCRA drift: arrival in milliseconds", "a rate does not drift in an hour",
        "self.arrival[org] = arrival + starts * spacing(limits)",
        "self.arrival[org] = Fraction(round(arrival + starts * spacing(limits), -3))"),
    mutant("burst ignored", RATE, "limits.burst * each", "each"),
    mutant("a new rate forgives", "a rate that changes keeps what is owed",
        "self.now + owed * spacing(after)", "Fraction(self.now)"),
    mutant("lapsed slot revived by a renewal", "a lapsed slot is not revived by a renewal",
        "        slot = self.own(holder)\n",
        "        slot = next((s for s in self.slots if s.holder == holder), None)\n"),
    of_delivery("fencing ignored", FENCED, "if message.read_ct != outcome.read_ct:", "if False:"),
    of_delivery("idempotence dropped", "a delivery settled again is not counted again",
        "        if message.is_over:\n", "        if False:\n"),
    of_delivery("give-back counts", UNCOUNTED, 'counts=outcome.do == "retry"',
        'counts=outcome.do != "snooze"'),
    of_delivery("policy ignored", LEFT, 'if queue.on_success == "archive":', "if True:"),
    mutant("key ignored", KEYS, "if key and m.key == key", "if False"),
    of_delivery("heartbeat extends what is over",
        "a late heartbeat does not hide what was given back",
        "message.read_ct != read_ct or message.is_over", "message.read_ct != read_ct"),
    of_delivery("a beginning counted twice", "a handler that began and never ended is a crash",
        "if suspect and message.begun_read_ct != message.read_ct:", "if suspect:"),
    mutant("full caps win over no_demand", "with nothing visible no_demand wins over full caps",
        "        if not waiting:\n",
        "        if not waiting and self.seat_for(ask, pinned=True):\n"),
    mutant("n not clamped", "a plain claim reads a hundred at most, a settling one 500",
        "min(ask.n, MAX_N_PLAIN)", "ask.n"),
)  # fmt: skip
