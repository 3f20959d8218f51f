"""D28: one run for each function of an isolate; another poke finds it running."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairlease.host.functions import FunctionFolder
from fairlease.host.manifest import Kind, Manifest
from fairlease.host.runs import Runs

from .rig import Rig, virtual

if TYPE_CHECKING:
    from fairlease.drain.run import Drain


@dataclass
class DrainRun:
    """A drain as the host sees it."""

    drain: Drain
    run_id: str

    async def run(self) -> object:
        return await self.drain.run()

    def stop(self) -> None:
        self.drain.stop()

    def cancel_handlers(self) -> None:
        self.drain.cancel_handlers()


def function(name: str) -> FunctionFolder:
    return FunctionFolder(Path(name), Manifest(name=name, kind=Kind.TASK))


@virtual
async def test_d28_a_second_poke_finds_the_run_of_its_function_and_starts_none() -> None:
    rig = Rig()
    rig.send("a", 10.0, count=12)
    made: list[str] = []

    def new_run(folder: FunctionFolder) -> DrainRun:
        made.append(folder.name)
        return DrainRun(rig.drain(), f"run {len(made)}")

    runs = Runs(new_run)
    first = runs.poke(function("drains"))
    await asyncio.sleep(5.0)
    second = runs.poke(function("drains"))
    other = runs.poke(function("another"))
    await runs.until_idle()

    assert (first.started, second.started, other.started) == (True, False, True)
    assert second.run_id == first.run_id
    assert made == ["drains", "another"]


@virtual
async def test_d28_when_the_run_has_ended_the_next_poke_starts_another() -> None:
    rig = Rig()
    runs = Runs(lambda _folder: DrainRun(rig.drain(), "run"))

    first = runs.poke(function("drains"))
    await runs.until_idle()
    second = runs.poke(function("drains"))
    await runs.until_idle()

    assert (first.started, second.started) == (True, True)
