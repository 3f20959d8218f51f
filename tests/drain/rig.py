"""One run of the shipped engine against the simulated database, with everything in reach."""

from __future__ import annotations

import asyncio
import functools
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from fairlease.drain.budget import RunBudget
from fairlease.drain.renew import in_task
from fairlease.drain.run import Drain, RunReport
from fairlease.drain.setup import RunSetup
from fairlease.messages.context import Context  # noqa: TC001 - registration resolves it
from fairlease.messages.registry import Worker
from fairlease.settings import load_settings
from fairlease.simulate.clock import VirtualClock
from fairlease.simulate.database import Database
from fairlease.simulate.loop import run_virtually
from fairlease.simulate.wire import Call, Trip, Wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fairlease.errors import RpcError
    from fairlease.events import Event
    from fairlease.model import ClaimRequest

E = TypeVar("E", bound="Event")

KNOBS = load_settings({}).knobs
CLAIMS = ("claim_org_slot_and_read", "settle_and_claim")
RENEWALS = ("heartbeat_org_slot", "renew_org_slot")
ROUND_TRIP_SECONDS = 0.02


def virtual(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test of which a day passes at once, and that fails where it would hang."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        run_virtually(_within_a_day(test(*args, **kwargs)))

    return run


async def _within_a_day(test: Awaitable[None]) -> None:
    async with asyncio.timeout(86_400.0):
        await test


class Sleep(BaseModel):
    seconds: float = 0.0


class Nothing(BaseModel):
    pass


@dataclass(slots=True)
class Rig:
    """Must be made inside the running loop. `knobs` by their names in lower case."""

    queues: tuple[str, ...] = ("q",)
    knobs: dict[str, int] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    budget: RunBudget = field(default_factory=RunBudget)
    more: dict[str, Any] = field(default_factory=dict)
    database: Database = field(init=False)
    wire: Wire = field(init=False)
    clock: VirtualClock = field(default_factory=VirtualClock)
    worker: Worker = field(default_factory=Worker)
    events: list[Event] = field(default_factory=list)
    # Trips of the next calls, by function; and (function, trip) for every call from now on.
    scripts: dict[str, list[Trip]] = field(default_factory=dict)
    always: dict[str, Trip] = field(default_factory=dict)
    sent_at: list[tuple[float, Call]] = field(default_factory=list)
    started: list[tuple[float, str, int]] = field(default_factory=list)
    ended: list[tuple[float, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.database = Database(self.now)
        self.database.attach(*self.queues)
        self.wire = Wire(self.database, self._travel, self.missing)

        @self.worker.handler("sleep", timeout=86_400.0)
        async def sleep(args: Sleep, ctx: Context) -> None:
            self.started.append((self.now(), ctx.org, ctx.msg_id))
            await asyncio.sleep(args.seconds)
            self.ended.append((self.now(), ctx.org, ctx.msg_id))

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def send(
        self, org: str, seconds: float = 0.0, *, count: int = 1, queue: str = "", delay: float = 0.0
    ) -> list[int]:
        """Several of one kind differ a little, so that they do not all end in one tick."""
        bodies = [
            {"method": "sleep", "args": {"seconds": seconds * (1 + k * 7 % 5 / 20)}}
            for k in range(count)
        ]
        return [self.database.send(queue or self.queues[0], org, b, delay) for b in bodies]

    def send_to(self, method: str, org: str = "a", queue: str = "") -> int:
        return self.database.send(queue or self.queues[0], org, {"method": method, "args": {}})

    def handler(self, **policy: Any) -> Callable[[Any], Any]:
        """Register an `async def name(args, ctx)` under its own name."""

        def register(function: Any) -> Any:
            function.__annotations__ = {"args": Nothing, "return": None}
            return self.worker.handler(function.__name__, **policy)(function)

        return register

    def drain(self, **more: Any) -> Drain:
        knobs = KNOBS.model_copy(update={"idle_budget_seconds": 0, **self.knobs})
        setup = RunSetup(
            run_id="run",
            name="rig",
            queues=self.queues,
            handlers=self.worker.handlers,
            knobs=knobs,
            budget=self.budget,
            rpc=self.wire,
            clock=self.clock,
            dice=random.Random(1),
            **{"observe": self.events.append, **self.more, **more},
        )
        return Drain(setup, in_task(self.wire))

    async def run(self) -> RunReport:
        return await self.drain().run()

    def said(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def calls(self, *functions: str) -> list[Call]:
        return [call for call in self.wire.calls if call.function in functions]

    @property
    def claims(self) -> list[ClaimRequest]:
        """Every claim that was sent; a settle alone (`n = 0`) is none."""
        requests = [call.arguments[0] for call in self.calls(*CLAIMS)]
        return [request for request in requests if request.n]

    @property
    def archived(self) -> set[int]:
        return {msg_id for queue in self.database.queues.values() for msg_id in queue.archive}

    @property
    def held(self) -> list[str]:
        return [slot.holder for slot in self.database.slots.live(self.now())]

    def script(self, function: str, *trips: Trip) -> None:
        """What happens to the next calls of this function."""
        self.scripts.setdefault(function, []).extend(trips)

    def _travel(self, call: Call) -> Trip:
        self.sent_at.append((self.now(), call))
        half = ROUND_TRIP_SECONDS / 2
        if call.function == "settle_and_claim" and not call.arguments[0].n:
            kind = "settle"
        else:
            kind = "claim" if call.function in CLAIMS else call.function
        if self.scripts.get(kind):
            return self.scripts[kind].pop(0)
        return self.always.get(kind, Trip(half, half))


def fails(error: RpcError) -> Trip:
    """The call never reaches the database."""
    return Trip(0.01, 0.01, error=error)


def breaks(error: RpcError) -> Trip:
    """The call takes effect, and its answer is lost on the way."""

    def raise_it(_said: Any) -> Any:
        raise error

    return Trip(0.01, 0.01, answer=raise_it)
