"""Time and dice, injected: a day of draining runs in milliseconds under a virtual clock."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Seconds that only grow, the calendar, and a way to wait."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary origin; never goes back. For every duration and deadline."""
        ...

    def now(self) -> datetime:
        """The calendar in UTC. Only for people and for dates that a server sent."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The clock of this machine."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
