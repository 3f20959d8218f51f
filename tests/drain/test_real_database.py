"""The same scenarios in virtual time and, scaled, on a real database in real time: they agree."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from pydantic import BaseModel

from fairlease.clock import SystemClock
from fairlease.drain.budget import RunBudget
from fairlease.drain.renew import in_task, in_thread
from fairlease.drain.run import Drain, RunReport
from fairlease.drain.setup import RunSetup
from fairlease.events import ClaimAnswered, Event
from fairlease.messages.context import Context  # noqa: TC001 - registration resolves it
from fairlease.messages.registry import Worker
from fairlease.simulate.clock import VirtualClock
from fairlease.simulate.database import Database
from fairlease.simulate.loop import run_virtually
from fairlease.simulate.wire import Trip, Wire
from fairlease.transports.postgres import PostgresRpc

from .rig import KNOBS

if TYPE_CHECKING:
    from fairlease.clock import Clock
    from fairlease.rpc import Rpc

pytestmark = pytest.mark.slow

# A simulated second takes so long: every difference of two endings is far above a round trip.
REAL_SECONDS = 0.015


class Work(BaseModel):
    seconds: float


@dataclass(frozen=True)
class Played:
    """What must not depend on whether the database and the time are real."""

    orgs: tuple[str, ...]
    streams: tuple[tuple[str | None, int], ...]
    claims: int
    most_in_flight: int
    reason: str
    utilisation: float


def durations(count: int, seed: int) -> list[float]:
    """No two messages end together: each is a little longer than a multiple of three."""
    dice = random.Random(seed)
    return [round(dice.randint(2, 12) * 3 + k * 0.31 % 3, 2) for k in range(count)]


MESSAGES = [
    *(("a", seconds) for seconds in durations(24, 1)),
    *(("b", seconds) for seconds in durations(8, 2)),
]
SCENARIOS = {
    "batch": {"org_slot_continuous_refill": 0},
    "quantum": {"org_slot_stream_quantum_refills": 2},
    "refill": {"org_slot_stream_quantum_refills": 64},
}


async def play(name: str, rpc: Rpc, clock: Clock, scale: float, renewal: Any) -> Played:
    worker, events, spans = Worker(), list[Event](), list[tuple[float, float, str]]()

    @worker.handler("work")
    async def work(args: Work, ctx: Context) -> None:
        began = clock.monotonic()
        await asyncio.sleep(args.seconds * scale)
        spans.append((began, clock.monotonic(), ctx.org))

    setup = RunSetup(
        run_id="run",
        name="compared",
        queues=(name,),
        handlers=worker.handlers,
        knobs=KNOBS.model_copy(update={"idle_budget_seconds": 1, **SCENARIOS[name]}),
        budget=RunBudget(),
        rpc=rpc,
        clock=clock,
        dice=random.Random(1),
        observe=events.append,
    )
    report = await Drain(setup, renewal).run()
    return _played(report, events, spans)


def _played(
    report: RunReport, events: list[Event], spans: list[tuple[float, float, str]]
) -> Played:
    streams: list[tuple[str | None, int]] = []
    for event in events:
        if isinstance(event, ClaimAnswered):
            if not event.pinned:
                streams.append((event.org, 0))
            streams[-1] = (streams[-1][0], streams[-1][1] + event.messages)
    spans.sort()
    whole = max(end for _, end, _ in spans) - spans[0][0]
    busy = sum(end - began for began, end, _ in spans)
    return Played(
        tuple(org for _, _, org in spans),
        tuple(stream for stream in streams if stream[1]),
        report.claims,
        report.most_in_flight,
        report.reason,
        busy / (KNOBS.drain_concurrency * whole),
    )


def simulated(name: str) -> Played:
    async def main() -> Played:
        database = Database(asyncio.get_running_loop().time)
        database.attach(name)
        for org, seconds in MESSAGES:
            body = {"method": "work", "args": {"seconds": seconds}}
            database.send(name, f"{name}-{org}", body)
        wire = Wire(database, lambda _call: Trip(0.05, 0.05))
        return await play(name, wire, VirtualClock(), 1.0, in_task(wire))

    return run_virtually(main())


async def real(name: str, url: str) -> Played:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select fairlease.attach_queue(%s)", [name])
        for org, seconds in MESSAGES:
            body = {"method": "work", "org": f"{name}-{org}", "args": {"seconds": seconds}}
            connection.execute("select pgmq.send(%s, %s)", [name, Jsonb(body)])
    rpc = PostgresRpc(url)

    async def connect() -> Rpc:
        return PostgresRpc(url)

    try:
        return await play(name, rpc, SystemClock(), REAL_SECONDS, in_thread(connect))
    finally:
        await rpc.aclose()


async def test_simulation_and_database_agree(database: str) -> None:
    """Three fleets at once: what costs time here is waiting for the handlers."""
    began = time.monotonic()
    played = await asyncio.gather(*(real(name, database) for name in SCENARIOS))
    assert time.monotonic() - began > 2.0

    for name, found in zip(SCENARIOS, played, strict=True):
        expected = await asyncio.to_thread(simulated, name)
        assert found.orgs == expected.orgs
        assert found.streams == expected.streams
        assert found.most_in_flight == expected.most_in_flight == 4
        assert found.reason == expected.reason == "idle"
        # Two that end within one round trip are settled together.
        assert found.claims == pytest.approx(expected.claims, rel=0.1)
        assert found.utilisation == pytest.approx(expected.utilisation, abs=0.2)
    batch, quantum, refill = (found.utilisation for found in played)
    assert batch < min(quantum, refill)
