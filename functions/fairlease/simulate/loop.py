"""An event loop that never waits: where nothing is ready, its clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

# Two instants closer than this are one: far above the rounding of a day in seconds.
RESOLUTION_SECONDS = 1e-6


class Deadlock(RuntimeError):
    """Nothing is ready and no timer is set: whatever is awaited can never happen."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """For programs without threads and without real I/O; `time()` starts at 0."""

    def __init__(self) -> None:
        self._seconds = 0.0
        super().__init__(_Jumping(self))
        self._clock_resolution = RESOLUTION_SECONDS

    def time(self) -> float:
        return self._seconds

    def jump(self, seconds: float) -> None:
        """Let time pass without a step of the loop, as a handler does that blocks it."""
        self._seconds += seconds


class _Jumping(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Deadlock("every task waits, and no timer is set")
        if timeout > 0:
            self._loop.jump(timeout)
        return []


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` as `asyncio.run` does, in no time. Raises `Deadlock` where it would hang."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
