"""Batch-at-a-time: claim, run all, claim again. The kill switch's other branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlease.drain.rotate import settle_and_rotate

if TYPE_CHECKING:
    from fairlease.drain.run import Drain


async def batch_at_a_time(drain: Drain, max_in_flight: int) -> str:
    """Returns why the run ends, with nothing in flight. Each settle is sent as its handler ends."""
    drain.check_tracking(max_in_flight)
    while True:
        reason = await settle_and_rotate(drain, [])
        if reason is not None:
            return reason
        await run_out(drain)
        if drain.in_flight.abandoned.is_set():
            return drain.must_end() or "abandoned"


async def run_out(drain: Drain) -> None:
    """Let what is in flight end, and settle it; return early where it is abandoned."""
    in_flight = drain.in_flight
    while len(in_flight):
        await in_flight.something_ended()
        ended = in_flight.take_ended()
        if ended:
            await drain.settling.settle(ended[0].queue, ended)
        elif in_flight.abandoned.is_set():
            return
