from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairlease.clock import SystemClock
from fairlease.host.functions import FunctionFolder
from fairlease.host.manifest import Kind, Manifest
from fairlease.host.runs import Runs
from fairlease.host.tasks import TaskContext, TaskRun
from fairlease.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def folder(name: str) -> FunctionFolder:
    return FunctionFolder(Path(name), Manifest(name=name, kind=Kind.TASK))


def context() -> TaskContext:
    return TaskContext("t", "run-1", SystemClock(), load_settings({}))


@dataclass
class Scripted:
    """A run that does what the test says."""

    body: Callable[[], Awaitable[object]]
    run_id: str = "r"
    told: list[str] = field(default_factory=list)

    async def run(self) -> object:
        return await self.body()

    def stop(self) -> None:
        self.told.append("stop")
        raise RuntimeError("a run that cannot stop")

    def cancel_handlers(self) -> None:
        self.told.append("cancel")


async def test_two_functions_run_side_by_side_and_a_long_one_blocks_no_other() -> None:
    end = asyncio.Event()
    runs = Runs(lambda _folder: Scripted(end.wait))
    assert runs.poke(folder("a")).started
    assert runs.poke(folder("b")).started
    assert not runs.poke(folder("a")).started
    end.set()
    await runs.until_idle()
    assert runs.idle


async def test_a_run_that_raises_is_over_and_the_next_poke_starts_another() -> None:
    async def fails() -> None:
        raise RuntimeError("boom")

    runs = Runs(lambda _folder: Scripted(fails))
    runs.poke(folder("a"))
    await runs.until_idle()
    assert runs.poke(folder("a")).started
    await runs.until_idle()


async def test_a_run_that_cannot_be_made_leaves_nothing_behind() -> None:
    def refuses(_folder: FunctionFolder) -> Scripted:
        raise RuntimeError("no")

    runs = Runs(refuses)
    with pytest.raises(RuntimeError):
        runs.poke(folder("a"))
    assert runs.idle


async def test_a_stop_reaches_every_run_once_even_past_one_that_raises() -> None:
    end, made = asyncio.Event(), []

    def new_run(_folder: FunctionFolder) -> Scripted:
        made.append(Scripted(end.wait))
        return made[-1]

    runs = Runs(new_run)
    runs.poke(folder("a"))
    runs.poke(folder("b"))
    runs.stop()
    runs.stop()
    runs.cancel_handlers()
    assert [run.told for run in made] == [["stop", "cancel"]] * 2
    end.set()
    await runs.until_idle()


async def test_a_task_is_told_to_stop_and_may_finish() -> None:
    done: list[str] = []

    async def run(ctx: TaskContext) -> None:
        await ctx.stopping.wait()
        done.append(ctx.run_id)

    task = TaskRun(run, context())
    running = asyncio.create_task(task.run())
    await asyncio.sleep(0)
    task.stop()
    assert await running == "done"
    assert done == ["run-1"]


async def test_a_task_that_does_not_finish_is_cancelled_at_the_end_of_the_grace() -> None:
    task = TaskRun(lambda _ctx: asyncio.sleep(3600), context())
    running = asyncio.create_task(task.run())
    await asyncio.sleep(0)
    task.stop()
    task.cancel_handlers()
    assert await running == "cancelled"
