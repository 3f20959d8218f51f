"""The runs of this isolate: at most one for each function, all told to stop together."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from fairlease.clock import SystemClock
from fairlease.events import FunctionEnded, FunctionStarted, PokeAnswered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fairlease.clock import Clock
    from fairlease.events import Observer
    from fairlease.host.functions import FunctionFolder

log = logging.getLogger("fairlease.host")


class Run(Protocol):
    """One run of a function, not started yet."""

    @property
    def run_id(self) -> str: ...

    async def run(self) -> Any:
        """Work until there is nothing to do, no time, or `stop`; returns a report."""
        ...

    def stop(self) -> None:
        """Begin nothing new; what is in flight finishes."""
        ...

    def cancel_handlers(self) -> None:
        """The grace is over: end what is in flight."""
        ...


@dataclass(frozen=True, slots=True)
class Poked:
    """The answer to a poke. `started` False: this run was there before."""

    run_id: str
    started: bool


@dataclass(slots=True)
class Runs:
    """Starts runs and ends them; lives on one event loop."""

    new_run: Callable[[FunctionFolder], Run]
    observe: Observer = field(default=lambda _event: None)
    clock: Clock = field(default_factory=SystemClock)
    stopping: bool = False
    _live: dict[str, Run] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def idle(self) -> bool:
        return not self._tasks

    @property
    def live(self) -> Mapping[str, Run]:
        """The runs that go on, by function."""
        return self._live

    def poke(self, folder: FunctionFolder) -> Poked:
        """Start a run of the function, unless one is going on. Not to be called once stopping."""
        if live := self._live.get(folder.name):
            return self._poked(folder, live, started=False)
        run = self._live[folder.name] = self.new_run(folder)
        task = asyncio.create_task(self._to_its_end(folder.name, run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return self._poked(folder, run, started=True)

    def stop(self) -> None:
        """No run starts any more; those that go on are told to stop."""
        if self.stopping:
            return
        self.stopping = True
        for run in tuple(self._live.values()):
            _tell(run.stop, run.run_id)

    def cancel_handlers(self) -> None:
        for run in tuple(self._live.values()):
            _tell(run.cancel_handlers, run.run_id)

    async def until_idle(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _to_its_end(self, name: str, run: Run) -> None:
        told = {"function": name, "run_id": run.run_id}
        started = self.clock.monotonic()
        error: BaseException | None = None
        self.observe(FunctionStarted(run.run_id, name))
        try:
            report = await run.run()
            log.info("run ended", extra={**told, "report": report})
        except Exception as raised:
            error = raised
            log.exception("run failed", extra=told)
        finally:
            del self._live[name]
            seconds = self.clock.monotonic() - started
            self.observe(FunctionEnded(run.run_id, name, seconds, error))

    def _poked(self, folder: FunctionFolder, run: Run, *, started: bool) -> Poked:
        self.observe(PokeAnswered(run.run_id, folder.name, folder.manifest.schedule, started))
        return Poked(run.run_id, started)


def _tell(what: Callable[[], None], run_id: str) -> None:
    try:
        what()
    except Exception:
        log.exception("a run could not be told to stop", extra={"run_id": run_id})
