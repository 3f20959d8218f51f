"""Outside the loop: a thread that sees the loop stand still, says by what, and ends the process."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlease.events import LoopBlocked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from fairlease.drain.lease import Lease
    from fairlease.drain.setup import RunSetup

WatchdogHost = Callable[["RunSetup", "Lease"], AbstractContextManager[None]]

# The loop is asked so often whether it still steps, and said to be blocked after so long (seconds).
PERIOD_SECONDS = 0.2
BLOCKED_SECONDS = 1.0
# Innermost frames of the stack that blocks, and its characters.
FRAMES_SHOWN = 25
STACK_LIMIT = 8_000


@contextlib.contextmanager
def no_thread(_setup: RunSetup, _lease: Lease) -> Iterator[None]:
    """For virtual time, where there are no threads."""
    yield


@contextlib.contextmanager
def in_own_thread(setup: RunSetup, lease: Lease) -> Iterator[None]:
    """Watches the running loop, which must be the one of the calling thread."""
    watchdog = Watchdog(setup, lease, asyncio.get_running_loop(), threading.get_ident())
    thread = threading.Thread(target=watchdog.watch, name="fairlease-watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        # Not joined: it holds nothing, and looks at nothing any more.
        watchdog.stopped.set()


@dataclass(slots=True)
class Watchdog:
    """Reports a blocked loop once per handler.

    A loop that stands still for the run's `max_stall_seconds` is never waited for: the lease is
    given up, so that it lapses, and the process ended. So it is at the isolate's wall clock.
    """

    setup: RunSetup
    lease: Lease
    loop: asyncio.AbstractEventLoop
    loop_thread: int
    stopped: threading.Event = field(default_factory=threading.Event)
    _asked_at: float | None = None
    _said: weakref.WeakSet[asyncio.Task[object]] = field(default_factory=weakref.WeakSet)
    _said_without_task: bool = False

    def watch(self) -> None:
        """Until `stopped` is set, or the process was told to end."""
        while not self.stopped.wait(PERIOD_SECONDS):
            reason = self.look()
            if reason is not None:
                self.lease.given_up = True
                self.setup.end_process(reason)
                return

    def look(self) -> str | None:
        """One look; returns why the process must end, or None."""
        now = self.setup.clock.monotonic()
        if now >= self.setup.budget.isolate_end:
            return "the isolate is past its wall clock"
        if self._asked_at is None:
            self._asked_at = now
            with contextlib.suppress(RuntimeError):  # the loop is closed: the run is over
                self.loop.call_soon_threadsafe(self._step)
            return None
        blocked = now - self._asked_at
        if blocked >= BLOCKED_SECONDS:
            self._say(blocked)
        if blocked >= self.setup.knobs.max_stall_seconds:
            return f"the event loop has not stepped for {blocked:.0f} s"
        return None

    def _step(self) -> None:
        self._asked_at = None
        self._said_without_task = False

    def _say(self, seconds: float) -> None:
        task = asyncio.current_task(self.loop)
        if task in self._said if task is not None else self._said_without_task:
            return
        frame = sys._current_frames().get(self.loop_thread)  # noqa: SLF001 - there is no other way
        if frame is None:
            return
        if task is None:
            self._said_without_task = True
        else:
            self._said.add(task)
        name = task.get_name() if task is not None else ""
        self.setup.observe(LoopBlocked(self.setup.run_id, seconds, _stack(frame), name))


def _stack(frame: FrameType) -> str:
    """The innermost frames, most recent last; source lines, never values."""
    lines = traceback.format_list(traceback.extract_stack(frame)[-FRAMES_SHOWN:])
    return "".join(lines)[-STACK_LIMIT:]
