"""What a renewal tells the run: which deliveries are another's, and whether the lease is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlease.drain.handle import LEASE_LOST, LOST
from fairlease.events import DeliveryLost, HeartbeatFailed, LeaseLost

if TYPE_CHECKING:
    from fairlease.drain.flight import Flight
    from fairlease.drain.renew import Beat
    from fairlease.drain.run import Drain


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
                if flight.message.msg_id in beat.answer.lost:
                    _lose(drain, flight, "another delivery has begun")
                elif flight.message.msg_id in beat.answer.gone:
                    _lose(drain, flight, "the message is gone")
    _cut_off(drain)


def _cut_off(drain: Drain) -> None:
    """A worker that cannot reach the database must not run on beside its successor."""
    now = drain.setup.clock.monotonic()
    timeout = drain.setup.knobs.visibility_timeout_seconds
    for flight in tuple(drain.in_flight.running):
        if now - drain.lease.extended_at.get(flight.message.delivery, now) > timeout:
            _lose(drain, flight, "not extended for a visibility timeout")
    if drain.lease.is_lost(now):
        _lose_lease(drain)


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


def _lose(drain: Drain, flight: Flight, why: str) -> None:
    if not flight.lost:
        flight.lost = True
        drain.setup.observe(
            DeliveryLost(drain.setup.run_id, flight.queue, flight.message.msg_id, why)
        )
        drain.handling.cancel(flight, LOST)
