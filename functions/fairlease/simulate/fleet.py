"""Plays a scenario: the isolates of a fleet on one virtual loop, against one database."""

from __future__ import annotations

import asyncio
import math
import random
from typing import TYPE_CHECKING

from pydantic import BaseModel

from fairlease.drain.budget import RunBudget
from fairlease.drain.setup import RunSetup
from fairlease.messages.context import Context  # noqa: TC001 - registration resolves it
from fairlease.messages.registry import Worker
from fairlease.simulate.clock import VirtualClock
from fairlease.simulate.database import Database
from fairlease.simulate.isolate import Isolate, adopt_tasks
from fairlease.simulate.loop import run_virtually
from fairlease.simulate.measure import Measured, measure
from fairlease.simulate.recorder import Recorder
from fairlease.simulate.wire import Trip, Wire

if TYPE_CHECKING:
    from fairlease.drain.run import Drain
    from fairlease.messages.registry import Handler
    from fairlease.simulate.scenario import Load, Scenario

QUEUE = "work"
METHOD = "work"


class Work(BaseModel):
    """The arguments of a simulated message."""

    seconds: float


def play(scenario: Scenario) -> Measured:
    """The outcome; the same for the same scenario, on every machine."""
    return run_virtually(_play(scenario))


async def _play(scenario: Scenario) -> Measured:
    loop = asyncio.get_running_loop()
    adopt_tasks(loop)
    fleet = _Fleet(scenario, loop)
    fleet.begin()
    await fleet.until_over()
    await fleet.end()
    left = len(fleet.database.queues[QUEUE].rows)
    return measure(scenario, fleet.recorder, stranded=fleet.stranded, left=left)


class _Fleet:
    def __init__(self, scenario: Scenario, loop: asyncio.AbstractEventLoop) -> None:
        self.scenario = scenario
        self.loop = loop
        self.dice = random.Random(scenario.seed)  # noqa: S311 - it must repeat
        self.recorder = Recorder(loop.time)
        self.database = Database(loop.time)
        self.database.attach(QUEUE)
        self.born: list[Isolate] = []
        self.live: dict[int, Isolate] = {}
        self.stranded = 0
        self.poking = scenario.poke_seconds is not None

    def begin(self) -> None:
        for load in self.scenario.loads:
            self.loop.call_at(load.at_seconds, self._send, load)
        for worker in range(self.scenario.workers):
            self.loop.call_soon(self._poke, worker)
        for kill in self.scenario.kills:
            self.loop.call_at(kill.at_seconds, self._kill, kill.worker)

    async def until_over(self) -> None:
        """Poked until everything is settled, every worker comes to rest by itself."""
        pace = self.scenario.poke_seconds or 1.0
        await asyncio.sleep(max((load.at_seconds for load in self.scenario.loads), default=0.0))
        while self.loop.time() < self.scenario.horizon_seconds:
            await asyncio.sleep(pace)
            self.poking = self.poking and bool(self.database.queues[QUEUE].rows)
            rests = not any(isolate.busy for isolate in self.live.values())
            if rests and not self.poking:
                return

    async def end(self) -> None:
        for isolate in self.born:
            isolate.kill()
        for isolate in self.born:
            await isolate.until_gone()
        failures = [failure for isolate in self.born for failure in isolate.failures]
        if failures:
            raise failures[0]

    def _send(self, load: Load) -> None:
        for seconds in load.durations:
            body = {"method": METHOD, "args": {"seconds": seconds}}
            self.recorder.send(load.org)
            self.database.send(QUEUE, load.org, body)

    def _poke(self, worker: int) -> None:
        if worker not in self.live:
            self.live[worker] = self._bear(worker)
        self.live[worker].poke()
        if self.scenario.poke_seconds is not None and self.poking:
            self.loop.call_later(self.scenario.poke_seconds, self._poke, worker)

    def _bear(self, worker: int) -> Isolate:
        scenario = self.scenario
        skew = sum(skew.seconds for skew in scenario.skews if skew.worker == worker)
        clock = VirtualClock(booted_seconds=abs(skew), calendar_skew_seconds=skew)
        half = scenario.call_seconds / 2
        wire = Wire(self.database, lambda _call: Trip(half, half))
        budget = _budget(scenario, clock.monotonic())

        def setup(isolate: Isolate) -> RunSetup:
            return RunSetup(
                run_id=f"{isolate.name}.{len(isolate.reports)}",
                name="simulated",
                queues=(QUEUE,),
                handlers=self._handlers(isolate),
                knobs=scenario.knobs,
                budget=budget,
                rpc=wire,
                clock=clock,
                dice=self.dice,
                observe=self.recorder.observe,
            )

        isolate = Isolate(f"{worker}.{len(self.born)}", wire, setup, self._prepare)
        self.born.append(isolate)
        if math.isfinite(scenario.lifetime_seconds):
            self.loop.call_later(scenario.lifetime_seconds, self._kill, worker, isolate)
        return isolate

    def _prepare(self, drain: Drain) -> None:
        drain.quantum.longest_stretch = self.scenario.longest_stretch

    def _handlers(self, isolate: Isolate) -> dict[str, Handler]:
        worker = Worker()

        @worker.handler(METHOD, timeout=self.scenario.handler_timeout_seconds)
        async def work(args: Work, ctx: Context) -> None:
            span = self.recorder.start(isolate.name, ctx.org, ctx.msg_id)
            try:
                await asyncio.sleep(args.seconds)
            finally:
                self.recorder.end(span)

        return worker.handlers

    def _kill(self, worker: int, expected: Isolate | None = None) -> None:
        isolate = self.live.get(worker)
        if isolate is None or (expected is not None and isolate is not expected):
            return
        del self.live[worker]
        self.stranded += self.recorder.kill(isolate.name)
        isolate.kill()


def _budget(scenario: Scenario, born: float) -> RunBudget:
    seconds = scenario.budget_seconds
    return RunBudget(
        claim_until=math.inf if seconds is None else born + seconds,
        isolate_end=born + scenario.lifetime_seconds,
    )
