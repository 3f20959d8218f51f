"""With nothing running: probe the queues in priority order, from any org, and idle if all rest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fairlease.drain.claim import outcome_is_unknown
from fairlease.errors import CallRefused, FunctionMissing, RpcError
from fairlease.model import ClaimStatus

if TYPE_CHECKING:
    from fairlease.drain.flight import Flight
    from fairlease.drain.run import Drain
    from fairlease.model import ClaimAnswer

# 64 orgs are probed per claim: a round that takes more claims has over 16,000 blocked orgs.
LONGEST_ROUND = 256

#: Causes of an answer without messages that do not speak for the whole fleet.
LOCKED = "locked"
PROBING = "probing"


async def settle_and_rotate(drain: Drain, ended: list[Flight]) -> str | None:
    """Settle, then claim unpinned; idle on a budget while no queue has work.

    Returns why the run ends, or None with new messages in flight.
    """
    idle_until, asked = math.inf, 0
    while True:
        ended = await _settle_apart(drain, ended)
        drain.setup.woken.clear()  # what is said of from here on, this probe may miss
        reason = await _probe(drain, ended)
        ended = []
        if reason is not None or len(drain.in_flight):
            return reason
        await drain.releasing.release()
        if not drain.probe_was_answered:
            # Nobody knows whether there is work: the count of failures bounds this, not idleness.
            await drain.pause(drain.delay.after_error())
            continue
        if not asked:
            idle_until = drain.setup.clock.monotonic() + drain.setup.knobs.idle_budget_seconds
        if not await _idle(drain, idle_until, asked):
            return drain.must_end() or "idle"
        asked += 1


async def _settle_apart(drain: Drain, ended: list[Flight]) -> list[Flight]:
    """Settle here what the next claim cannot carry: another queue's, or a lost holder's."""
    lease, clock = drain.lease, drain.setup.clock
    next_queue = drain.claiming.queues[0] if drain.claiming.queues else None
    if ended and (lease.is_lost(clock.monotonic()) or ended[0].queue != next_queue):
        await drain.settling.settle(ended[0].queue, ended)
        ended = []
    # Asked after the settle: one that meets a bad gateway may outlast the lease.
    if lease.is_lost(clock.monotonic()):
        await drain.releasing.release()
    return ended


async def _probe(drain: Drain, ended: list[Flight]) -> str | None:
    """Claim from each queue until one has work. Returns why the run must end, or None."""
    drain.retry_after_seconds = None
    drain.probe_was_answered = False
    for queue in tuple(drain.claiming.queues):
        answer = await _claim_round(drain, queue, ended)
        ended = []
        if answer is None:
            continue
        drain.probe_was_answered = True
        if answer.status is ClaimStatus.CLAIMED:
            drain.begin_stream(queue, answer)
            return None
        if answer.status is ClaimStatus.NO_CAPACITY and answer.cause != LOCKED:
            return answer.cause or "no_capacity"
        _note_retry_after(drain, answer)
    return drain.must_end() if drain.claiming.queues else "refused"


async def _claim_round(drain: Drain, queue: str, ended: list[Flight]) -> ClaimAnswer | None:
    """One claim, repeated while the database says that it has not looked at every org yet."""
    answer: ClaimAnswer | None = None
    for _ in range(LONGEST_ROUND):
        try:
            answer = await drain.claiming.claim(queue, drain.n, ended=ended)
        except (FunctionMissing, CallRefused) as error:
            drain.claiming.refuse_queue(queue, error)
            return None
        except RpcError as error:
            if outcome_is_unknown(error):
                # It may hold a slot under this name: free it, and claim under another.
                await drain.releasing.release()
            return None
        ended = []
        if answer is None:
            return None
        probing = answer.status is ClaimStatus.ORG_CAPACITY and answer.cause == PROBING
        if not probing:
            break
    return answer


def _note_retry_after(drain: Drain, answer: ClaimAnswer) -> None:
    """There is work behind a lock, and locks are held for moments."""
    after_ms = 0 if answer.cause == LOCKED else answer.retry_after_ms
    if after_ms is not None:
        known = drain.retry_after_seconds
        seconds = after_ms / 1000
        drain.retry_after_seconds = seconds if known is None else min(known, seconds)


async def _idle(drain: Drain, until: float, asked: int) -> bool:
    """Wait for the next probe; False once the idle budget is spent, or the run must end.

    At the end of its budget a run asks no more, unless the budget is shorter than a first pause.
    """
    left = min(until, drain.setup.budget.claim_until) - drain.setup.clock.monotonic()
    if left <= 0:
        return False
    pause = drain.delay.after_empty()
    if drain.retry_after_seconds is not None:
        pause = min(pause, max(drain.retry_after_seconds, _soonest(drain, asked)))
    woken = await drain.pause(min(pause, left))
    return drain.must_end() is None and (woken or pause < left or asked == 0)


def _soonest(drain: Drain, asked: int) -> float:
    """The busy interval, doubled with each probe in vain and spread, so that a crowd disperses."""
    busy_seconds = drain.setup.knobs.poll_busy_ms / 1000
    return busy_seconds * 2.0 ** min(asked, 10) * drain.setup.dice.uniform(0.75, 1.25)
