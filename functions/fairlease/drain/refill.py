"""Continuous refill: one ends, the next is taken, up to `n` in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlease.drain.batch import run_out
from fairlease.drain.rotate import LOCKED, settle_and_rotate
from fairlease.errors import CallRefused, FunctionMissing, RpcError
from fairlease.events import TopUpSkipped
from fairlease.model import ClaimStatus

if TYPE_CHECKING:
    from fairlease.drain.flight import Flight
    from fairlease.drain.run import Drain


async def continuous_refill(drain: Drain, max_in_flight: int) -> str:
    """Claim on every wake-up: the start of the run, and each step in which a message ended.

    Returns why the run ends, with nothing in flight but what is abandoned.
    """
    drain.check_tracking(max_in_flight)
    while True:
        if drain.in_flight.abandoned.is_set():
            await run_out(drain)
            return drain.must_end() or "abandoned"
        ended = drain.in_flight.take_ended()
        if drain.in_flight.running:
            await _settle_and_top_up(drain, ended)
        elif (reason := await settle_and_rotate(drain, ended)) is not None:
            return reason
        if len(drain.in_flight):
            await drain.in_flight.something_ended()


async def _settle_and_top_up(drain: Drain, ended: list[Flight]) -> None:
    """One round trip: settle what ended, claim the shortfall of the held org and no other."""
    queue, org = drain.lease.queue, drain.lease.org
    if queue is None or org is None:
        raise RuntimeError("messages are in flight that no claim accounts for")
    refusal = top_up_refusal(drain)
    if refusal is not None:
        _say_skipped(drain, refusal)
        await drain.settling.settle(queue, ended)
        return
    shortfall = min(room(drain), drain.quantum.remaining)
    try:
        answer = await drain.claiming.claim(queue, shortfall, pin=org, ended=ended)
    except FunctionMissing:
        drain.mode.latch("pin_org")
    except CallRefused as error:
        drain.claiming.refuse_queue(queue, error)
    except RpcError:
        # Said and counted by the claim; the next completion is the next try.
        return
    else:
        if answer is None:
            return
        drain.quantum.count(len(answer.messages))
        # Paused, throttled or over its cap: the run moves on once nothing is in flight.
        full = answer.status in (ClaimStatus.ORG_CAPACITY, ClaimStatus.NO_CAPACITY)
        drain.org_is_full = full and answer.cause != LOCKED


def room(drain: Drain) -> int:
    """How many more may be in flight; a database that gave too many makes it negative."""
    return drain.n - len(drain.in_flight.running)


def top_up_refusal(drain: Drain) -> str | None:  # noqa: PLR0911 - a list of reasons, in order
    """Why nothing may be claimed while messages are in flight; None: claim."""
    now = drain.setup.clock.monotonic()
    if (reason := drain.must_end()) is not None:
        return reason
    if not drain.mode.knows("pin_org"):
        return "pin_unsupported"
    if drain.lease.is_lost(now):
        return "lease_lost"
    if not drain.claiming.queues or drain.lease.queue != drain.claiming.queues[0]:
        return "priority"
    if drain.quantum.remaining == 0:
        return "quantum"
    if room(drain) <= 0:
        return "full"
    return "org_full" if drain.org_is_full else None


def _say_skipped(drain: Drain, reason: str) -> None:
    """Once per stream and reason, not once per message."""
    if drain.skipped != reason:
        drain.skipped = reason
        drain.setup.observe(
            TopUpSkipped(drain.setup.run_id, drain.lease.queue or "", drain.lease.org, reason)
        )
