"""When each running handler must end: one timer for all of them, set to the earliest."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlease.clock import Clock
    from fairlease.drain.flight import Flight


@dataclass(slots=True)
class Deadlines:
    """Calls `passed` with a flight and the reason given, once its deadline is over.

    A timer of the loop for each message would cost more than all the rest of a short handler.
    """

    clock: Clock
    passed: Callable[[Flight, str], None]
    _of: dict[Flight, tuple[float, str]] = field(default_factory=dict)
    _timer: asyncio.TimerHandle | None = None
    # What the timer is set to; infinite without one.
    _armed_at: float = math.inf

    def set(self, flight: Flight, deadline: float, reason: str) -> None:
        """`deadline` is an instant of the clock in seconds; an infinite one never comes."""
        if deadline == math.inf:
            return
        self._of[flight] = (deadline, reason)
        if deadline < self._armed_at:
            self._arm(deadline)

    def clear(self, flight: Flight) -> None:
        """It has ended. The timer stays while others run: it may go off early, for nobody."""
        if self._of.pop(flight, None) is not None and not self._of:
            self._disarm()

    def _arm(self, deadline: float) -> None:
        self._disarm()
        self._armed_at = deadline
        seconds = max(0.0, deadline - self.clock.monotonic())
        self._timer = asyncio.get_running_loop().call_later(seconds, self._fire)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._armed_at = None, math.inf

    def _fire(self) -> None:
        # A loop may be early by its resolution, and then it would be asked again and again.
        now = max(self.clock.monotonic(), self._armed_at)
        self._disarm()
        due = [(flight, reason) for flight, (at, reason) in self._of.items() if at <= now]
        for flight, _ in due:
            del self._of[flight]
        if self._of:
            self._arm(min(at for at, _ in self._of.values()))
        for flight, reason in due:
            self.passed(flight, reason)
