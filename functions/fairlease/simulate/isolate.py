"""One simulated process: runs of the shipped engine, one after the other, until it is killed."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlease.drain.renew import in_task
from fairlease.drain.run import Drain

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlease.drain.run import RunReport
    from fairlease.drain.setup import RunSetup
    from fairlease.simulate.wire import Wire

# A task belongs to the process in which it was made, as its context does.
_process: ContextVar[Isolate | None] = ContextVar("process", default=None)

# How often, and how far apart, the tasks of a killed process are told to end (virtual seconds).
_TIMES_TOLD = 200
_TOLD_AGAIN_SECONDS = 5.0


def adopt_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Let every task that is made in this loop be known to the isolate that makes it."""

    def make(loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coroutine, loop=loop, **more)
        if (isolate := _process.get()) is not None:
            isolate.tasks.add(task)
        return task

    loop.set_task_factory(make)


@dataclass(slots=True, eq=False)
class Isolate:
    """`setup_for` makes the setup of each run; `prepare` may change a drain before it runs."""

    name: str
    wire: Wire
    setup_for: Callable[[Isolate], RunSetup]
    prepare: Callable[[Drain], None] = field(default=lambda _drain: None)
    killed: bool = False
    stopping: bool = False
    drain: Drain | None = None
    reports: list[RunReport] = field(default_factory=list)
    # What `Drain.run` raised: a fault of the engine.
    failures: list[BaseException] = field(default_factory=list)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def poke(self) -> bool:
        """Start a run; False where one is going on, or nobody is there, or it is stopping."""
        if self.killed or self.stopping or self.drain is not None:
            return False
        before = _process.set(self)
        try:
            asyncio.get_running_loop().create_task(self._run())
        finally:
            _process.reset(before)
        return True

    async def _run(self) -> None:
        self.drain = Drain(self.setup_for(self), in_task(self.wire))
        self.prepare(self.drain)
        try:
            self.reports.append(await self.drain.run())
        except Exception as error:  # noqa: BLE001 - kept for whoever looks at the outcome
            self.failures.append(error)
        finally:
            self.drain = None

    @property
    def busy(self) -> bool:
        return self.drain is not None

    @property
    def live_tasks(self) -> set[asyncio.Task[Any]]:
        self.tasks = {task for task in self.tasks if not task.done()}
        return self.tasks

    def stop(self, grace_seconds: float) -> None:
        """As SIGTERM: no run starts any more; a handler that will not end may be left behind."""
        self.stopping = True
        if self.drain is not None:
            self.drain.stop(grace_seconds)

    def kill(self) -> None:
        """As SIGKILL: from here on nothing that it does reaches anyone."""
        self.killed = self.wire.cut = True
        for task in self.live_tasks:
            task.cancel()

    async def until_idle(self) -> None:
        while self.live_tasks:
            await asyncio.wait(self.live_tasks)

    async def until_gone(self) -> None:
        """After `kill`: until no task is left, however often one ignores its cancellation."""
        for _ in range(_TIMES_TOLD):
            if not self.live_tasks:
                return
            for task in self.live_tasks:
                task.cancel()
            await asyncio.wait(self.live_tasks, timeout=_TOLD_AGAIN_SECONDS)
        raise RuntimeError(f"{self.name}: tasks that nothing ends: {self.live_tasks}")
