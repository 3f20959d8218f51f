"""A function of kind `task`: one coroutine for each poke."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlease.clock import Clock
    from fairlease.events import Observer
    from fairlease.host.functions import TaskFunction
    from fairlease.rpc import Upkeep
    from fairlease.settings import Settings


@dataclass(slots=True)
class TaskContext:
    """What `run(ctx)` is given. A task that loops looks at `stopping`, or waits for it.

    `database` is None where the host has none; `observe` takes events and never raises.
    """

    name: str
    run_id: str
    clock: Clock
    settings: Settings
    database: Upkeep | None = None
    observe: Observer = field(default=lambda _event: None)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    log: logging.LoggerAdapter[logging.Logger] = field(init=False)

    def __post_init__(self) -> None:
        extra = {"function": self.name, "run_id": self.run_id}
        self.log = logging.LoggerAdapter(logging.getLogger("fairlease.task"), extra)


@dataclass(slots=True)
class TaskRun:
    """One run of a task; told to stop it may finish, at the end of the grace it is cancelled."""

    function: TaskFunction
    context: TaskContext
    _task: asyncio.Future[Any] | None = None
    _cancelled: bool = False

    @property
    def run_id(self) -> str:
        return self.context.run_id

    async def run(self) -> str:
        self._task = asyncio.ensure_future(self.function(self.context))
        try:
            await self._task
        except asyncio.CancelledError:
            if not self._cancelled:
                raise
            return "cancelled"
        return "done"

    def stop(self) -> None:
        self.context.stopping.set()

    def cancel_handlers(self) -> None:
        if self._task is not None:
            self._cancelled = True
            self._task.cancel()
