"""A worker as a process of its own, to be killed: `python worker_process.py '<orders as JSON>'`.

It tells what it does in lines of JSON. Where its orders name a point, as `before claim` or `after
settle`, it says that it is there and goes no further: whoever reads it kills it just there.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import psycopg
from pydantic import BaseModel

from fairlease.clock import SystemClock
from fairlease.drain import run as run_module
from fairlease.drain.budget import RunBudget
from fairlease.drain.renew import in_thread
from fairlease.drain.run import Drain
from fairlease.drain.setup import RunSetup
from fairlease.drain.watchdog import in_own_thread
from fairlease.messages.context import Context  # noqa: TC001 - registration resolves it
from fairlease.messages.registry import Worker
from fairlease.settings import load_settings
from fairlease.transports.postgres import PostgresRpc

if TYPE_CHECKING:
    from fairlease.events import Event
    from fairlease.model import ClaimRequest
    from fairlease.rpc import Rpc

TOLD = {"SettleAnswered", "DeliveryLost", "LeaseLost", "ClaimFailed", "HandlerCancelled"}


@dataclass
class Orders:
    """`grace_seconds` are a SIGTERM's; a top-up's answer is held back `answer_delay_seconds`."""

    database_url: str
    queue: str
    stop_at: str = ""
    knobs: dict[str, int] = field(default_factory=dict)
    grace_seconds: float = 10.0
    answer_delay_seconds: float = 0.0
    # Of a grace, in place of the engine's 10 and 5 seconds.
    settling_seconds: float = 1.0
    ending_seconds: float = 0.5


class Arguments(BaseModel):
    ms: int
    stubborn: bool = False


class Charge(BaseModel):
    """An effect to be done once; in a transaction of its own, or at the word of the database."""

    in_transaction: bool


def say(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}, default=str), flush=True)


async def halt(orders: Orders, point: str) -> None:
    if point == orders.stop_at:
        say("at", point=point)
        await asyncio.Event().wait()


@dataclass
class HaltingRpc:
    """The real client, which halts at one point; everything else passes through."""

    rpc: Rpc
    orders: Orders

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rpc, name)

    async def settle_and_claim(self, request: ClaimRequest, outcomes: Any, **more: Any) -> Any:
        verbs = [*(["settle"] if outcomes else []), *(["claim"] if request.n else [])]
        for verb in verbs:
            await halt(self.orders, f"before {verb}")
        answer = await self.rpc.settle_and_claim(request, outcomes, **more)
        for verb in verbs:
            await halt(self.orders, f"after {verb}")
        if request.pin_org is not None and self.orders.answer_delay_seconds:
            say("held", messages=[message.msg_id for message in answer.messages])
            await asyncio.sleep(self.orders.answer_delay_seconds)
        return answer

    async def heartbeat_org_slot(self, *arguments: Any, **more: Any) -> Any:
        await halt(self.orders, "poke")
        return await self.rpc.heartbeat_org_slot(*arguments, **more)

    async def release_org_slot(self, *arguments: Any, **more: Any) -> Any:
        await halt(self.orders, "before release")
        answer = await self.rpc.release_org_slot(*arguments, **more)
        await halt(self.orders, "after release")
        return answer


def handlers(orders: Orders) -> Worker:
    worker = Worker()

    @worker.handler("work")
    async def work(args: Arguments, ctx: Context) -> None:
        say("start", id=ctx.msg_id, org=ctx.org, attempt=ctx.attempt)
        await halt(orders, "handle")
        left = args.ms / 1000
        while left > 0:
            begun = ctx.clock.monotonic()
            with contextlib.suppress(*([asyncio.CancelledError] if args.stubborn else [])):
                await asyncio.sleep(left)
            left -= ctx.clock.monotonic() - begun
        say("end", id=ctx.msg_id)

    @worker.handler("charge")
    async def charge(args: Charge, ctx: Context) -> None:
        say("start", id=ctx.msg_id, org=ctx.org, attempt=ctx.attempt)
        async with await psycopg.AsyncConnection.connect(
            orders.database_url, autocommit=not args.in_transaction
        ) as own:
            if await ctx.once("charge", own if args.in_transaction else None):
                await halt(orders, "before effect")
                await own.execute("insert into charges default values")
                await halt(orders, "after effect")
        say("end", id=ctx.msg_id)

    return worker


def tell(event: Event) -> None:
    if type(event).__name__ in TOLD:
        say(type(event).__name__, **asdict(event))


def drain_of(orders: Orders) -> Drain:
    setup = RunSetup(
        run_id=str(os.getpid()),
        name="crash",
        queues=(orders.queue,),
        handlers=handlers(orders).handlers,
        knobs=load_settings({}).knobs.model_copy(update=orders.knobs),
        budget=RunBudget(),
        rpc=HaltingRpc(PostgresRpc(orders.database_url), orders),  # type: ignore[arg-type]
        clock=SystemClock(),
        dice=random.Random(),
        observe=tell,
    )

    async def connect() -> Rpc:
        return PostgresRpc(orders.database_url)

    return Drain(setup, in_thread(connect), in_own_thread)


async def main(orders: Orders) -> None:
    drain = drain_of(orders)

    def stop() -> None:
        say("stopping")
        drain.stop(orders.grace_seconds)

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    say("ready", pid=os.getpid())
    report = await drain.run()
    say("report", **asdict(report))
    # As the host's process at the end of its grace: it waits for nobody who does not end.
    os._exit(0)


if __name__ == "__main__":
    given = Orders(**json.loads(sys.argv[1]))
    run_module.SETTLING_SECONDS = given.settling_seconds
    run_module.ENDING_SECONDS = given.ending_seconds
    asyncio.run(main(given))
