"""How late the event loop is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlease.clock import Clock

PERIOD_SECONDS = 0.25


@dataclass(slots=True)
class LoopLag:
    """Asks to be woken, four times a second, and measures how much later that was."""

    clock: Clock
    worst_seconds: float = 0.0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            due = self.clock.monotonic() + PERIOD_SECONDS
            await self.clock.sleep(PERIOD_SECONDS)
            self.worst_seconds = max(self.worst_seconds, self.clock.monotonic() - due)

    def take(self) -> float:
        """The worst since the last look, in seconds."""
        worst, self.worst_seconds = self.worst_seconds, 0.0
        return worst
