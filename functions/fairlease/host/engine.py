"""From a function folder to a run: drains through the app, tasks as they are."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlease.app import App
from fairlease.clock import SystemClock
from fairlease.errors import ConfigurationError
from fairlease.events import fan_out
from fairlease.host.manifest import Kind
from fairlease.host.readiness import DatabaseCheck, Readiness
from fairlease.host.tasks import TaskContext, TaskRun
from fairlease.settings import Required
from fairlease.telemetry.logs import log_event

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence

    from fairlease.drain.run import Drain
    from fairlease.events import Observer
    from fairlease.host.functions import FunctionFolder
    from fairlease.host.runs import Run
    from fairlease.rpc import Rpc, Upkeep


log = logging.getLogger("fairlease.host")


@dataclass(frozen=True, slots=True)
class DrainRun:
    """A drain as the host sees it."""

    drain: Drain

    @property
    def run_id(self) -> str:
        return self.drain.setup.run_id

    async def run(self) -> Any:
        return await self.drain.run()

    def stop(self) -> None:
        self.drain.stop()

    def cancel_handlers(self) -> None:
        self.drain.cancel_handlers()


class Engine:
    """Makes the runs of this isolate. Code and settings are read here, once."""

    def __init__(
        self,
        environ: Mapping[str, str],
        functions: Mapping[str, FunctionFolder],
        observers: Sequence[Observer] = (log_event,),
        trace_calls: Callable[[Rpc, str], Rpc] | None = None,
    ) -> None:
        """Raises `ConfigurationError` for a function or a connection that cannot work."""
        self._environ = environ
        self.observe = fan_out(observers)
        drains = [f for f in functions.values() if f.kind is Kind.DRAIN]
        self._app: App | None = None
        if drains or _has_database(environ):
            self._app = App(environ, observers=observers, trace_calls=trace_calls)
        workers = {f.name: f.load_worker() for f in drains}
        self._handlers = {name: worker.handlers for name, worker in workers.items()}
        self._closers = [close for worker in workers.values() for close in worker.closers]
        self._tasks = {f.name: f.load_task() for f in functions.values() if f.kind is Kind.TASK}
        self._queues = tuple(dict.fromkeys(queue for f in drains for queue in f.queues))
        self._check: tuple[Rpc, DatabaseCheck] | None = None

    def new_run(self, folder: FunctionFolder) -> Run:
        if folder.kind is Kind.TASK:
            settings = folder.settings(self._environ)
            context = TaskContext(
                folder.name,
                uuid.uuid4().hex[:12],
                SystemClock(),
                settings,
                database=self.upkeep(),
                observe=self.observe,
            )
            return TaskRun(self._tasks[folder.name], context)
        assert self._app is not None  # noqa: S101 - there is a drain
        handlers, knobs = self._handlers[folder.name], folder.manifest.knobs
        return DrainRun(self._app.drain(folder.name, folder.queues, handlers, knobs))

    def new_shift(self, folder: FunctionFolder, woken: asyncio.Event) -> Drain:
        """A run of a drain that idles until it is woken. For a process without a wall clock."""
        assert self._app is not None  # noqa: S101 - there is a drain
        handlers, knobs = self._handlers[folder.name], folder.manifest.knobs
        return self._app.drain(folder.name, folder.queues, handlers, knobs, woken=woken)

    def upkeep(self) -> Upkeep | None:
        """None where no database is configured."""
        return None if self._app is None else self._app.upkeep()

    async def readiness(self) -> Readiness:
        if self._app is None or not self._queues:
            return Readiness()
        if self._check is None:
            rpc = self._app.connect()
            self._check = rpc, DatabaseCheck(rpc, self._queues, SystemClock())
        return await self._check[1].readiness()

    async def aclose(self) -> None:
        for close in self._closers:
            try:
                await close()
            except Exception:
                log.exception("a function's client could not be closed")
        if self._check is not None:
            await self._check[0].aclose()
        if self._app is not None:
            await self._app.aclose()


def _has_database(environ: Mapping[str, str]) -> bool:
    try:
        Required(environ).transport()
    except ConfigurationError:
        return False
    return True
