"""What may go wrong while a run waits: a lost delivery, a lost lease, work that stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlease.drain.handle import LEASE_LOST, STALLED
from fairlease.events import HeartbeatFailed, LeaseLost

if TYPE_CHECKING:
    from fairlease.drain.renew import Beat
    from fairlease.drain.run import Drain

# How often a run looks at itself, as a share of the TTL. Every instant that it waits for is set
# at least a TTL less a call ahead, so that a look in between cannot come too late.
LOOKS_PER_TTL = 12


def hear(drain: Drain, beat: Beat) -> None:
    """Called in the loop of the run, for every renewal, also for one that failed."""
    if beat.function_missing:
        drain.mode.latch("heartbeat_org_slot")
    elif beat.answer is None:
        drain.setup.observe(HeartbeatFailed(drain.setup.run_id, beat.snapshot.holder, beat.error))
    else:
        deliveries = set(beat.snapshot.deliveries)
        for flight in tuple(drain.in_flight.running):
            if flight.message.delivery in deliveries:
                drain.handling.hear(flight, beat.answer)
    look(drain)


async def keep_watch(drain: Drain) -> None:
    """Until cancelled: look again at the next instant at which something falls due."""
    clock = drain.setup.clock
    longest = drain.setup.knobs.org_slot_lease_ttl_seconds / LOOKS_PER_TTL
    while True:
        await clock.sleep(min(longest, max(0.0, look(drain) - clock.monotonic())))


def look(drain: Drain) -> float:
    """Act on what is due; returns the next instant that is."""
    now = drain.setup.clock.monotonic()
    due = [_stalls_at(drain, now)]
    timeout = drain.setup.knobs.visibility_timeout_seconds
    for flight in tuple(drain.in_flight.running):
        if flight.lost:
            continue
        redelivered_at = drain.lease.extended_at.get(flight.message.delivery, now) + timeout
        if redelivered_at <= now:
            # A worker cut off from the database must not run on beside its successor.
            drain.handling.lose(flight, "not extended for a visibility timeout")
        due.append(redelivered_at)
    if drain.lease.is_lost(now):
        _lose_lease(drain)
    elif drain.lease.queue is not None:
        due.append(drain.lease.lapses_at)
    return min(instant for instant in due if instant > now)


def _stalls_at(drain: Drain, now: float) -> float:
    """When a run without progress is given up: of its handlers, or of a settle that repeats."""
    longest = drain.setup.knobs.max_stall_seconds
    if not len(drain.in_flight):
        return now + longest
    at = drain.in_flight.progress_at + longest
    if at <= now:
        drain.cancel_handlers(STALLED)
    return at if at > now else now + longest


def _lose_lease(drain: Drain) -> None:
    lease = drain.lease
    if drain.lost_holder_said == lease.holder:
        return
    drain.lost_holder_said = lease.holder
    by_database = lease.lost_holder == lease.holder
    why = "the database says so" if by_database else "no renewal succeeded for a TTL"
    overshoot = len(drain.in_flight.running)
    drain.setup.observe(LeaseLost(drain.setup.run_id, lease.queue, lease.holder, why, overshoot))
    if drain.setup.cancel_on_lost_lease:
        for flight in tuple(drain.in_flight.running):
            drain.handling.cancel(flight, LEASE_LOST)
