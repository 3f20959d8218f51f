"""How soon a message is picked up: from its send to the start of its handler.

Idle: woken by NOTIFY, as `fairlease work` is, and by the polls alone. Under load: the message of a
quiet org while a busy one has a backlog that outlasts the measurement, with default knobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg
from pydantic import BaseModel

from fairlease import Context, Worker
from fairlease.app import App
from fairlease.clock import SystemClock
from fairlease.transports.notifications import Listener

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

QUEUE = "pickup"
# pgmq tells of at most one insert in a throttle; a message each so often is told of on its own.
THROTTLE_MS = 50
BACKLOG = 50_000
BUSY_SECONDS = 0.02


class Nap(BaseModel):
    seconds: float = 0.0


@dataclass
class Arrivals:
    """When the handler of each quiet message began."""

    worker: Worker = field(default_factory=Worker)
    begun: dict[int, asyncio.Future[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.worker.handler("nap")(self.nap)

    async def nap(self, args: Nap, ctx: Context) -> None:
        if ctx.org == "quiet":
            self.of(ctx.msg_id).set_result(time.perf_counter())
        await asyncio.sleep(args.seconds)

    def of(self, msg_id: int) -> asyncio.Future[float]:
        loop = asyncio.get_running_loop()
        return self.begun.setdefault(msg_id, loop.create_future())


@contextlib.asynccontextmanager
async def working(url: str, arrivals: Arrivals, *, listens: bool) -> AsyncIterator[None]:
    """A run that idles until it is woken, with the knobs' defaults."""
    app, woken = App({"FAIRLEASE_DATABASE_URL": url}, observers=()), asyncio.Event()
    drain = app.drain("pickup", [QUEUE], arrivals.worker.handlers, woken=woken)
    run = asyncio.create_task(drain.run())
    dice = random.Random(1)
    listener = Listener(url, (QUEUE,), lambda _queue: woken.set(), SystemClock(), dice)
    listening = asyncio.create_task(listener.run()) if listens else None
    await asyncio.sleep(1.0)
    try:
        yield
    finally:
        drain.stop(grace_seconds=15)
        await run
        if listening is not None:
            listening.cancel()
        await app.aclose()


async def seconds_each(
    admin: psycopg.AsyncConnection, arrivals: Arrivals, sends: int, dice: random.Random
) -> list[float]:
    body = json.dumps({"method": "nap", "org": "quiet", "args": {}})
    taken = []
    for _ in range(sends):
        # At any phase of the polls.
        await asyncio.sleep(dice.uniform(0.2, 1.2))
        since = time.perf_counter()
        cursor = await admin.execute("select pgmq.send(%s, %s::jsonb)", [QUEUE, body])
        row = await cursor.fetchone()
        assert row is not None
        taken.append(await asyncio.wait_for(arrivals.of(row[0]), 120) - since)
    return taken


async def fill(admin: psycopg.AsyncConnection) -> None:
    body = json.dumps({"method": "nap", "org": "busy", "args": {"seconds": BUSY_SECONDS}})
    await admin.execute(
        "select pgmq.send_batch(%s, array_agg(%s::jsonb)) from generate_series(1, %s)",
        [QUEUE, body, BACKLOG],
    )


async def _measure(url: str, sends: int) -> list[dict[str, float | str]]:
    lines: list[dict[str, float | str]] = []
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as admin:
        await admin.execute("select pgmq.create(%s)", [QUEUE])
        await admin.execute("select fairlease.attach_queue(%s)", [QUEUE])
        await admin.execute("select pgmq.enable_notify_insert(%s, %s)", [QUEUE, THROTTLE_MS])
        for when, listens, busy in [
            ("idle, woken", True, False),
            ("idle, polled", False, False),
            ("under load", True, True),
        ]:
            if busy:
                await fill(admin)
            arrivals = Arrivals()
            async with working(url, arrivals, listens=listens):
                taken = await seconds_each(admin, arrivals, sends, random.Random(sends))
            taken.sort()
            p95 = taken[min(len(taken) - 1, round(0.95 * len(taken)))]
            lines.append(
                {
                    "when": when,
                    "median_ms": round(1000 * statistics.median(taken), 1),
                    "p95_ms": round(1000 * p95, 1),
                }
            )
    return lines


def pickup_milliseconds(url: str, sends: int = 20) -> list[dict[str, float | str]]:
    """`when`, `median_ms` and `p95_ms` of each way."""
    return asyncio.run(_measure(url, sends))
