"""Runs back to back, in a process that nobody pokes: each drain has one run, always."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlease.events import FunctionEnded, FunctionStarted
from fairlease.pacing import PollingDelay

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from fairlease.clock import Clock
    from fairlease.drain.run import Drain, RunReport
    from fairlease.events import Observer
    from fairlease.host.functions import FunctionFolder
    from fairlease.settings import Knobs

log = logging.getLogger("fairlease.work")

# Ends after which the next run may begin at once: the run itself paced what it asked.
_ORDERLY = frozenset({"idle", "budget"})
# Ends for want of room, which frees by itself: asked again at the idle interval, never slower.
_FULL = frozenset({"fleet_full", "stopped", "no_capacity"})


# A stop must be heard in time too.
_LONGEST_DEAFNESS_SECONDS = 1.0


@dataclass(slots=True)
class Totals:
    """What all runs did; `still_running` are message ids left to their visibility timeout."""

    runs: int = 0
    messages: int = 0
    claims: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    still_running: list[int] = field(default_factory=list)

    def add(self, report: RunReport) -> None:
        self.runs += 1
        self.messages += report.messages
        self.claims += report.claims
        self.reasons[report.reason] = self.reasons.get(report.reason, 0) + 1
        self.still_running += report.still_running


@dataclass(slots=True)
class Shifts:
    """One run of each drain at a time, the next after the last, until `stop`."""

    new_shift: Callable[[FunctionFolder, asyncio.Event], Drain]
    folders: Sequence[FunctionFolder]
    observe: Observer
    clock: Clock
    dice: random.Random
    totals: Totals = field(default_factory=Totals)
    stopping: bool = False
    _live: dict[str, Drain] = field(default_factory=dict)
    _woken: dict[str, asyncio.Event] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._woken = {folder.name: asyncio.Event() for folder in self.folders}

    def wake(self, queue: str) -> None:
        """There may be work in this queue."""
        for folder in self.folders:
            if queue in folder.queues:
                self._woken[folder.name].set()

    async def run(self, knobs_of: Callable[[FunctionFolder], Knobs]) -> Totals:
        """Until stopped and everything in flight has ended, or was abandoned."""
        await asyncio.gather(*(self._keep(folder, knobs_of(folder)) for folder in self.folders))
        return self.totals

    def stop(self, grace_seconds: float) -> None:
        """Claim no more; what is in flight has the grace, less what it takes to settle."""
        self.stopping = True
        for drain in tuple(self._live.values()):
            drain.stop(grace_seconds)
        for woken in self._woken.values():
            woken.set()

    def cancel_handlers(self) -> None:
        for drain in tuple(self._live.values()):
            drain.cancel_handlers()

    async def _keep(self, folder: FunctionFolder, knobs: Knobs) -> None:
        delay = PollingDelay.from_knobs(knobs, self.dice)
        while not self.stopping:
            report = await self._shift(folder)
            if report is not None:
                self.totals.add(report)
            if seconds := _pause(report, delay):
                await self._wait(folder, seconds, knobs.poll_busy_ms / 1000)

    async def _shift(self, folder: FunctionFolder) -> RunReport | None:
        """None for a run that raised, which is said here and by the run itself."""
        drain = self._live[folder.name] = self.new_shift(folder, self._woken[folder.name])
        run_id, started = drain.setup.run_id, self.clock.monotonic()
        self.observe(FunctionStarted(run_id, folder.name))
        error: BaseException | None = None
        try:
            return await drain.run()
        except Exception as raised:
            error = raised
            log.exception("run failed", extra={"function": folder.name, "run_id": run_id})
            return None
        finally:
            del self._live[folder.name]
            seconds = self.clock.monotonic() - started
            self.observe(FunctionEnded(run_id, folder.name, seconds, error))

    async def _wait(self, folder: FunctionFolder, seconds: float, shortest: float) -> None:
        """Until woken; never shorter than the busy interval, however often it is woken."""
        if self.stopping:
            return
        shortest = min(shortest, _LONGEST_DEAFNESS_SECONDS)
        await self.clock.sleep(min(seconds, shortest))
        woken = self._woken[folder.name]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(woken.wait(), max(0.0, seconds - shortest))


def _pause(report: RunReport | None, delay: PollingDelay) -> float:
    """Seconds before the next run."""
    if report is None:
        return delay.after_error()
    if report.reason in _ORDERLY:
        return 0.0
    if report.reason in _FULL:
        return delay.after_held()
    return delay.after_work() if report.messages else delay.after_error()
