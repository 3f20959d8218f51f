"""Plays a plan with the shipped engine, and checks what must hold during and after."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlease.drain.budget import RunBudget
from fairlease.drain.setup import RunSetup
from fairlease.events import RunEnded
from fairlease.simulate.clock import VirtualClock
from fairlease.simulate.database import Database
from fairlease.simulate.isolate import Isolate
from fairlease.simulate.wire import Wire

from .behaviour import METHOD, REGISTERED, Work, behave, body_of
from .network import Network
from .plan import CALM_AFTER_SECONDS, QUEUES

if TYPE_CHECKING:
    from fairlease.events import Event
    from fairlease.messages.context import Context
    from fairlease.messages.registry import Handler

    from .plan import Job, Mishap, Plan

POKE_SECONDS = 30.0
HORIZON_SECONDS = CALM_AFTER_SECONDS + 6 * 3600.0
STOP_GRACE_SECONDS = 40.0
# An idle budget, a settle's or release's repeats, and a lease: after that a run has let go.
LONGEST_END_SECONDS = 200.0


class Violated(AssertionError):
    """A property that must hold does not."""


@dataclass(slots=True, eq=False)
class Running:
    """One handler that has started and not ended."""

    isolate: Isolate
    context: Context
    msg_id: int
    org: str
    run: object


@dataclass(slots=True, eq=False)
class World:
    plan: Plan
    loop: asyncio.AbstractEventLoop
    database: Database = field(init=False)
    dice: random.Random = field(init=False)
    live: dict[int, Isolate] = field(default_factory=dict)
    born: list[Isolate] = field(default_factory=list)
    clocks: dict[int, VirtualClock] = field(default_factory=dict)
    networks: dict[int, Network] = field(default_factory=dict)
    running: list[Running] = field(default_factory=list)
    starts: Counter[int] = field(default_factory=Counter)
    completed: set[int] = field(default_factory=set)
    jobs: dict[int, Job] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    poking: bool = True
    # What the schema lacks, for every worker at once, until somebody migrates it.
    missing: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.missing = set(self.plan.missing)
        self.dice = random.Random(self.plan.seed ^ 0x5EED)
        self.database = Database(self.loop.time)
        self.database.attach(*QUEUES)
        for worker in range(self.plan.workers):
            skew = self.dice.uniform(-1e6, 1e6)
            self.clocks[worker] = VirtualClock(abs(skew), skew)
            self.networks[worker] = Network(self.plan.weather, self.dice, self.loop.time)

    def begin(self) -> None:
        self.loop.set_exception_handler(self._unhandled)
        for job in self.plan.jobs:
            self.loop.call_at(job.at, self._send, job)
        for worker in range(self.plan.workers):
            self.loop.call_at(self.dice.uniform(0, POKE_SECONDS), self._poke, worker)
        for mishap in self.plan.mishaps:
            self.loop.call_at(mishap.at, self._befall, mishap)
        self.loop.call_at(CALM_AFTER_SECONDS, self._calm)

    async def until_drained(self) -> None:
        """Poked until nothing is queued; then each run comes to its end by itself."""
        await asyncio.sleep(CALM_AFTER_SECONDS)
        while any(queue.rows for queue in self.database.queues.values()):
            if self.loop.time() > HORIZON_SECONDS:
                self.break_("messages are left in a queue that nothing drains")
                break
            await asyncio.sleep(POKE_SECONDS)
        self.poking = False
        await asyncio.sleep(LONGEST_END_SECONDS)
        if busy := [isolate.name for isolate in self.live.values() if isolate.busy]:
            self.break_(f"runs without work that do not end: {busy}")

    def break_(self, what: str) -> None:
        self.broken.append(f"at {self.loop.time():.2f} s: {what}")

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.break_(f"unhandled: {context.get('message')} {context.get('exception')!r}")

    def _send(self, job: Job) -> None:
        body = body_of(job.seconds, job.ill, job.times)
        self.jobs[self.database.send(job.queue, job.org, body)] = job

    def _poke(self, worker: int) -> None:
        if worker not in self.live:
            self.live[worker] = self._bear(worker)
        if self.poking:
            self.live[worker].poke()
        self.loop.call_later(POKE_SECONDS, self._poke, worker)

    def _bear(self, worker: int) -> Isolate:
        knobs, clock = self.plan.knobs, self.clocks[worker]
        born = clock.monotonic()
        budget = RunBudget()
        if self.plan.bounded:
            budget = RunBudget(
                born + knobs.org_slot_run_budget_seconds, born + knobs.isolate_lifetime_seconds
            )
        wire = Wire(self.database, self.networks[worker].travel, self.missing)

        def setup(isolate: Isolate) -> RunSetup:
            return RunSetup(
                run_id=f"{isolate.name}/{len(isolate.reports)}",
                name=isolate.name,
                queues=QUEUES,
                handlers=self._handlers(isolate),
                knobs=knobs,
                budget=budget,
                rpc=wire,
                clock=clock,
                dice=self.dice,
                observe=partial(self._observe, isolate),
                cancel_on_lost_lease=self.plan.cancel_on_lost_lease,
                visibility_is_set=True,
                end_process=lambda _reason: self._kill(isolate),
            )

        isolate = Isolate(f"w{worker}.{len(self.born)}", wire, setup)
        self.born.append(isolate)
        if self.plan.bounded:
            self.loop.call_later(knobs.isolate_lifetime_seconds, self._kill, isolate)
        return isolate

    def _observe(self, isolate: Isolate, event: Event) -> None:
        if isinstance(event, RunEnded) and self.plan.is_calm:
            holders = [slot.holder for slot in self.database.slots.live(self.loop.time())]
            if kept := [h for h in holders if h.startswith(f"{isolate.name}/")]:
                self.break_(f"a run ended and kept {kept}")
        if self.plan.observers_raise:
            raise self.dice.choice((ValueError("no"), SystemExit(1), asyncio.CancelledError()))

    def _handlers(self, isolate: Isolate) -> dict[str, Handler]:
        async def work(args: Work, ctx: Context) -> None:
            self.starts[ctx.msg_id] += 1
            running = Running(isolate, ctx, ctx.msg_id, ctx.org, isolate.drain)
            self.running.append(running)
            self._check_start(running)
            try:
                await behave(args, ctx, self.starts[ctx.msg_id], lambda: self._kill(isolate))
                if not isolate.killed:
                    self.completed.add(ctx.msg_id)
            finally:
                self.running.remove(running)

        return {METHOD: dataclasses.replace(REGISTERED, function=work)}

    def _check_start(self, started: Running) -> None:
        alive = [r for r in self.running if not r.isolate.killed]
        knobs = self.plan.knobs
        own = sum(r.isolate is started.isolate for r in alive)
        if own > knobs.drain_concurrency:
            self.break_(f"{own} in flight in one run")
        now = self.loop.time()
        holders = {slot.holder.split("/")[0] for slot in self.database.slots.live(now)}
        counted = [r for r in alive if r.org == started.org and r.isolate.name in holders]
        if len(counted) > knobs.org_slot_max_per_org * knobs.drain_concurrency:
            self.break_(f"{len(counted)} of {started.org} run under live leases")
        for other in alive:
            if other.msg_id == started.msg_id and other is not started and not _told(other):
                self.break_(f"message {started.msg_id} runs twice")

    def _befall(self, mishap: Mishap) -> None:
        isolate = self.live.get(mishap.worker)
        clock = self.clocks[mishap.worker]
        match mishap.what:
            case "kill" if isolate is not None:
                self._kill(isolate)
            case "stop" if isolate is not None and isolate.drain is not None:
                isolate.stop(STOP_GRACE_SECONDS)
                self.loop.call_later(STOP_GRACE_SECONDS, self._kill, isolate)
            case "partition":
                self.networks[mishap.worker].cut_until = mishap.at + mishap.seconds
            case "clock_jump":
                clock.booted_seconds += mishap.seconds
            case "calendar_jump":
                clock.calendar_skew_seconds += self.dice.choice((-1, 1)) * mishap.seconds * 1000
            case "pause":
                self.database.slots.state_of(mishap.org).paused = True
                self.loop.call_later(mishap.seconds, self._resume, mishap.org)
            case "deploy":
                # The schema moves on under the feet of running workers.
                self.missing.clear()

    def _resume(self, org: str) -> None:
        self.database.slots.state_of(org).paused = False

    def _calm(self) -> None:
        self.missing.clear()
        for state in self.database.slots.orgs.values():
            state.paused = False

    def _kill(self, isolate: Isolate) -> None:
        for worker, each in tuple(self.live.items()):
            if each is isolate:
                del self.live[worker]
        isolate.kill()


def _told(running: Running) -> bool:
    """Its handler was told to end, or will be at the run's next look at itself."""
    drain = running.isolate.drain
    if running.context.cancelled or drain is None or drain is not running.run:
        return True
    timeout = drain.setup.knobs.visibility_timeout_seconds
    for flight in drain.in_flight.running:
        if flight.message.msg_id == running.msg_id:
            extended = drain.lease.extended_at.get(flight.message.delivery, 0.0)
            return drain.setup.clock.monotonic() - extended >= timeout
    return True
