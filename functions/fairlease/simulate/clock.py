"""The clock of one simulated machine: it runs with the loop, and may be wrong."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class VirtualClock:
    """A `Clock` on the running loop.

    `booted_seconds` shifts the origin of `monotonic`, as on a machine with another uptime;
    `calendar_skew_seconds` shifts the calendar. Both may be changed at any time: the calendar of
    a machine jumps either way, its monotonic clock only forward, as after a suspend.
    """

    booted_seconds: float = 0.0
    calendar_skew_seconds: float = 0.0

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() + self.booted_seconds

    def now(self) -> datetime:
        seconds = asyncio.get_running_loop().time() + self.calendar_skew_seconds
        return EPOCH + timedelta(seconds=seconds)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))
