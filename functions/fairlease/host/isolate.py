"""The isolate: this process, from its start to its retirement or its wall clock."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from fairlease.drain.budget import ISOLATE_STARTED_AT
from fairlease.host.stop_signals import StopSignalLoop

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlease.clock import Clock
    from fairlease.host.lifetime import Lifetime

log = logging.getLogger("fairlease.host")

# What the exit code says to whoever reads it: the wall clock, not a crash of ours.
WALL_CLOCK_EXIT_CODE = 70
# Handlers are cancelled this long before the process is killed, so that they can still settle.
CANCEL_BEFORE_KILL_SECONDS = 10.0
# The server retires an isolate by itself at the end of its budget; later than this it forgot.
_RETIREMENT_DELAY_SECONDS = 10.0
_IDLE_LOOK_SECONDS = 1.0
# The kernel ends what even the watchdog cannot: a thread that never lets go of the interpreter.
_ALARM_DELAY_SECONDS = 2.0
_LONGEST_WAIT_SECONDS = 3600.0


@dataclass(slots=True)
class Watchdog:
    """A thread that ends this process at its wall clock, whatever the event loop does.

    It also notices that the parent died: then nobody restarts, stops or counts this process any
    more, and it stops itself with the grace that a stop has.
    """

    clock: Clock
    end_at: float
    grace_seconds: float
    _thread: threading.Thread = field(init=False)

    def start(self) -> None:
        """To be called in the main thread: the alarm is a signal."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        self._set_alarm()
        self._thread = threading.Thread(target=self._watch, name="isolate-watchdog", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        parent = multiprocessing.parent_process()
        watched = [parent.sentinel] if parent is not None else []
        while (left := self.end_at - self.clock.monotonic()) > 0:
            if wait(watched, min(left, _LONGEST_WAIT_SECONDS)):
                watched = []
                self._orphaned()
        log.critical("isolate past its wall clock; ending the process")
        for handler in logging.getLogger().handlers:
            handler.flush()
        os._exit(WALL_CLOCK_EXIT_CODE)

    def _orphaned(self) -> None:
        log.error("the host's main process is gone; stopping")
        self.end_at = min(self.end_at, self.clock.monotonic() + self.grace_seconds)
        self._set_alarm()
        os.kill(os.getpid(), signal.SIGTERM)

    def _set_alarm(self) -> None:
        left = max(0.0, self.end_at - self.clock.monotonic())
        signal.setitimer(signal.ITIMER_REAL, left + _ALARM_DELAY_SECONDS)


async def retire(
    lifetime: Lifetime, clock: Clock, idle: Callable[[], bool], successor: Callable[[], None]
) -> None:
    """Ask for a successor once this isolate may claim no more and has nothing in flight."""
    due = ISOLATE_STARTED_AT + lifetime.budget_seconds + _RETIREMENT_DELAY_SECONDS
    last = ISOLATE_STARTED_AT + lifetime.serving_seconds + _RETIREMENT_DELAY_SECONDS
    await clock.sleep(max(0.0, due - clock.monotonic()))
    while not idle() and clock.monotonic() < last:
        await clock.sleep(_IDLE_LOOK_SECONDS)
    log.info("isolate past its budget; asking for a successor")
    successor()


def ask_parent_for_successor() -> None:
    """The server's own reload: the successor accepts first, then this process gets SIGTERM.

    Not once that has come: the successor is there, and would be replaced at once.
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, StopSignalLoop) and loop.stopped:
        return
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid == os.getppid():
        os.kill(os.getppid(), signal.SIGHUP)
