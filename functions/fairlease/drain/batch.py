"""Batch-at-a-time: claim, run all, claim again. The kill switch's other branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlease.drain.rotate import settle_and_rotate

if TYPE_CHECKING:
    from fairlease.drain.run import Drain


async def batch_at_a_time(drain: Drain) -> str:
    """Returns why the run ends, with nothing in flight. Each settle is sent as its handler ends."""
    while True:
        reason = await settle_and_rotate(drain, [])
        if reason is not None:
            return reason
        while len(drain.in_flight):
            await drain.in_flight.something_ended()
            ended = drain.in_flight.take_ended()
            await drain.settling.settle(ended[0].queue, ended)
