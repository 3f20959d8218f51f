"""Plays a plan: the shipped engine and sender, in virtual time, on a real database."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from fairlease.drain.budget import RunBudget
from fairlease.drain.setup import RunSetup
from fairlease.errors import RpcError, TransientError
from fairlease.messages.context import Context  # noqa: TC001 - registration resolves it
from fairlease.messages.registry import Worker
from fairlease.messages.sending import send
from fairlease.messages.verdicts import Dead, RateLimited, Retry, Snooze
from fairlease.model import NewMessage
from fairlease.settings import load_settings
from fairlease.simulate.clock import VirtualClock
from fairlease.simulate.isolate import Isolate

from .database import QUEUE
from .ledger import WAITING, Ledger
from .wire import FaultyWire, Weather

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlease.messages.registry import Handler

    from .database import RealDatabase
    from .plan import Job, Mishap, Plan

METHOD = "work"
MAX_ATTEMPTS = 3
KNOBS = load_settings({}).knobs.model_copy(
    update={
        "visibility_timeout_seconds": 60,
        "org_slot_lease_ttl_seconds": 45,
        "handler_timeout_seconds": 100,
        "idle_budget_seconds": 0,
    }
)
POKE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 3600.0
STOP_GRACE_SECONDS = 12.0
HORIZON_SECONDS = 30 * 86_400.0
# A late second copy of a call may still be on its way when all is done.
LAST_ARRIVAL_SECONDS = 200.0
FOR_EVER = 1e7
SEND_TRIES = 5


class Work(BaseModel):
    job: int


def _registered() -> Handler:
    worker = Worker()

    @worker.handler(METHOD, retry=Retry(max_attempts=MAX_ATTEMPTS, base=2.0, cap=10.0))
    async def work(args: Work, ctx: Context) -> None:
        raise NotImplementedError

    return worker.handlers[METHOD]


REGISTERED = _registered()
RAISED: dict[str, Callable[[], Exception]] = {
    "raise": lambda: ValueError("bad\x00\ud800"),
    "retry_after": lambda: Retry(after=3.0),
    "snooze": lambda: Snooze(5.0),
    "dead": lambda: Dead("it cannot work"),
    "rate_limited": lambda: RateLimited(7.0),
}


@dataclass(slots=True, eq=False)
class World:
    plan: Plan
    loop: asyncio.AbstractEventLoop
    database: RealDatabase
    ledger: Ledger = field(init=False)
    weather: Weather = field(init=False)
    clock: VirtualClock = field(default_factory=VirtualClock)
    dice: random.Random = field(default_factory=lambda: random.Random(1))
    live: dict[int, Isolate] = field(default_factory=dict)
    born: list[Isolate] = field(default_factory=list)
    # Deliveries that reached a process, and those whose handler began; by job, how often one did;
    # ids whose handler returned.
    received: Counter[int] = field(default_factory=Counter)
    began: Counter[int] = field(default_factory=Counter)
    deeds_done: Counter[int] = field(default_factory=Counter)
    returned: set[int] = field(default_factory=set)
    # Deliveries in which the handler brought its process down.
    deaths: Counter[int] = field(default_factory=Counter)
    effects: Counter[int] = field(default_factory=Counter)
    # Questions by job whose answer nobody has heard.
    asking: Counter[int] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.loop.time, MAX_ATTEMPTS, self.plan.max_attempts_of_queue)
        self.weather = Weather(self.plan.faults)
        self.database.reset(self.plan, self.ledger, self.loop.time)
        self.loop.set_exception_handler(self._unhandled)

    async def play(self) -> None:
        """Until every message has come to its end, and nothing is under way any more."""
        sending = [
            self.loop.create_task(self._send(number, job))
            for number, job in enumerate(self.plan.jobs)
        ]
        for mishap in self.plan.mishaps:
            self.loop.call_at(mishap.at, self._befall, mishap)
        last = max((mishap.at for mishap in self.plan.mishaps), default=0.0)
        await self._poke_until_drained(
            lambda: self.loop.time() > last and all(task.done() for task in sending)
        )
        await asyncio.sleep(LAST_ARRIVAL_SECONDS)
        await self._poke_until_drained(lambda: True)
        for isolate in self.born:
            isolate.kill()
            await isolate.until_gone()

    async def _poke_until_drained(self, all_is_sent: Callable[[], bool]) -> None:
        pause = POKE_SECONDS
        while not self.broken and (self.ledger.among(WAITING) or not all_is_sent()):
            if self.loop.time() > HORIZON_SECONDS:
                self.broken.append(f"nothing ends these: {self.ledger.among(WAITING)}")
            before = self.ledger.witnessed.total() + len(self.ledger.entries)
            if self.ledger.among(WAITING):
                self._poke()
            await asyncio.sleep(pause)
            moved = self.ledger.witnessed.total() + len(self.ledger.entries) > before
            calm = all_is_sent() and not moved
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS) if calm else POKE_SECONDS

    def _poke(self) -> None:
        for worker in range(self.plan.workers):
            if worker not in self.live or self.live[worker].killed:
                self.live[worker] = self._bear(worker)
            self.live[worker].poke()

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.broken.append(f"at {self.loop.time():.2f} s: {context.get('message')} {error!r}")

    # -- senders

    async def _send(self, number: int, job: Job) -> None:
        """A key makes sending again harmless; without one, only what was refused is sent again."""
        await asyncio.sleep(job.at)
        wire = FaultyWire(self.database, weather=self.weather)
        message = NewMessage(_body(number, job), org=job.org, key=_key(job))
        for _ in range(SEND_TRIES):
            try:
                await send(wire, QUEUE, [message], job.delay_seconds, timeout_seconds=10.0)
            except TransientError as error:
                if message.key is None and error.took_effect is not False:
                    return
            except RpcError:
                return
            else:
                return

    # -- processes

    def _bear(self, worker: int) -> Isolate:
        wire = FaultyWire(self.database, weather=self.weather, received=self.received)
        isolate = Isolate(f"w{worker}.{len(self.born)}", wire, self._setup)
        wire.die = isolate.kill
        self.born.append(isolate)
        return isolate

    def _setup(self, isolate: Isolate) -> RunSetup:
        plan = self.plan
        changes = {
            "drain_concurrency": plan.drain_concurrency,
            "max_crashes": plan.max_crashes,
            "org_slot_continuous_refill": plan.continuous_refill,
        }
        handler = dataclasses.replace(REGISTERED, function=partial(self._work, isolate))
        return RunSetup(
            run_id=f"{isolate.name}/{len(isolate.reports)}",
            name=isolate.name,
            queues=(QUEUE,),
            handlers={METHOD: handler},
            knobs=KNOBS.model_copy(update=changes),
            budget=RunBudget(),
            rpc=isolate.wire,
            clock=self.clock,
            dice=self.dice,
            end_process=lambda _reason: isolate.kill(),
        )

    async def _work(self, isolate: Isolate, args: Work, ctx: Context) -> None:
        job = self.plan.jobs[args.job]
        self._check_start(ctx, job)
        self.began[ctx.msg_id] += 1
        nth = self.deeds_done[args.job]
        self.deeds_done[args.job] += 1
        deed = job.deeds[nth] if nth < len(job.deeds) else ""
        if job.once:
            await self._once(args.job, ctx)
        await asyncio.sleep(job.seconds)
        self.deaths[ctx.msg_id] += deed.startswith("die")
        await self._do(deed, isolate)
        self.returned.add(ctx.msg_id)

    def _check_start(self, ctx: Context, job: Job) -> None:
        entry = self.ledger.entries[ctx.msg_id]
        if (ctx.org, ctx.key) != (job.org, _key(job)):
            self.broken.append(f"{entry} was handled as {ctx}")
        # A first death is not booked: nothing was suspect yet.
        if max(entry.crashes, self.deaths[ctx.msg_id] - 1) > self.plan.max_crashes:
            self.broken.append(f"poison was handled: {entry}")

    async def _once(self, job: int, ctx: Context) -> None:
        """The effect happens in the first delivery that is told so, unless one died as it asked."""
        self.asking[job] += 1
        is_to_be_done = await ctx.once(f"effect of {job}")
        self.asking[job] -= 1
        if is_to_be_done:
            self.effects[job] += 1
        elif not self.effects[job] and not self.asking[job]:
            self.broken.append(
                f"the effect of {job} is lost: {ctx.msg_id} was told that it is done"
            )

    async def _do(self, deed: str, isolate: Isolate) -> None:
        if deed in RAISED:
            error = RAISED[deed]()
            raise error
        if deed.startswith("die"):
            isolate.kill()
        if deed in ("die", "hang"):
            await asyncio.sleep(FOR_EVER)

    # -- operators

    def _befall(self, mishap: Mishap) -> None:
        match mishap.what:
            case "replay_one":
                self.database.replay(only=0)
            case "replay" | "purge_dead" | "purge_waiting" | "cancel" | "maintain":
                getattr(self.database, mishap.what)()
            case "kill":
                for isolate in self.live.values():
                    isolate.kill()
            case "stop":
                for isolate in self.live.values():
                    isolate.stop(STOP_GRACE_SECONDS)
                    self.loop.call_later(STOP_GRACE_SECONDS, isolate.kill)


def _key(job: Job) -> str | None:
    """A message that is no object cannot bear one."""
    return job.key if job.never_runs != "not_an_object" else None


def _body(number: int, job: Job) -> Any:
    if job.never_runs == "not_an_object":
        return ["no", "object", number]
    method = "nobody's" if job.never_runs == "unknown_method" else METHOD
    asked = "bad" if job.never_runs == "bad_arguments" else number
    return {"args": {"job": asked}, "method": method}
