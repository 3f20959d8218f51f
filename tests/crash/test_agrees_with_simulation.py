"""The same scenarios in the simulation and on the real database behind the gateway, a hundred times
faster than life: what the simulation says about the engine is what the engine does."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest

from crash.processes import working
from crash.worker_process import Orders
from fairlease.events import ClaimAnswered, ClaimFailed
from fairlease.local.gateway import GatewayConfig, running_gateway
from fairlease.settings import load_settings
from fairlease.simulate.fixture import load_durations
from fairlease.simulate.fleet import play
from fairlease.simulate.scenario import Kill, Load, Scenario
from fairlease.transports.postgres import PostgresRpc
from fairlease.transports.postgrest import PostgrestRpc
from skew.levels import QUEUE
from skew.work import Work
from skew.workers import DrainWorker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlease.local.postgres import LocalPostgres
    from fairlease.simulate.measure import Measured

pytestmark = pytest.mark.slow

KEY = "sb_secret_agreement"
SCALE = 100
CONCURRENCY = 4
#: What the clocks and the load of a test machine may move.
UTILISATION_TOLERANCE = 0.06
CLAIMS_TOLERANCE = 0.12
SECONDS_TOLERANCE = 2.0
BURST = tuple(seconds / SCALE for seconds in load_durations()[:64])
KNOBS = {
    "drain_concurrency": CONCURRENCY,
    "org_slot_lease_ttl_seconds": 6,
    "visibility_timeout_seconds": 12,
    "idle_budget_seconds": 0,
    "org_slot_global_cap": 8,
    "org_slot_max_per_org": 1,
}


@dataclass
class Spans(Work):
    """When each message ran, in seconds since the first."""

    spans: list[tuple[float, float, str]] = field(default_factory=list)

    async def do(self, org: str, msg_id: int, seconds: float) -> None:
        begun = time.monotonic()
        await super().do(org, msg_id, seconds)
        self.spans.append((begun, time.monotonic(), org))

    @property
    def utilisation(self) -> float:
        """As the simulation measures it."""
        busy = sum(end - begun for begun, end, _ in self.spans)
        first = min(begun for begun, _, _ in self.spans)
        return busy / (CONCURRENCY * (max(end for _, end, _ in self.spans) - first))

    def first_index(self, org: str) -> int:
        """How many of other orgs were begun before the first of this one."""
        first = min(begun for begun, _, whose in self.spans if whose == org)
        return sum(begun < first for begun, _, whose in self.spans if whose != org)


@dataclass
class Played:
    """One scenario on the real thing; `call_seconds` is the mean of its claims."""

    work: Spans
    claims: int
    call_seconds: float


@pytest.fixture
def session(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as session:
        session.execute("select fairlease.attach_queue(%s)", [QUEUE])
        yield session


@pytest.fixture
def url(postgres: LocalPostgres, database: str, session: psycopg.Connection) -> Iterator[str]:
    config = GatewayConfig(
        database_url=postgres.url(urlsplit(database).path.lstrip("/"), "authenticator"),
        jwt_secret="a-secret-of-the-agreement-tests-32-bytes",
        db_schemas=("public", "pgmq_public"),
        api_keys={KEY: "service_role"},
        db_pool=4,
    )
    with running_gateway(config) as found:
        yield found


def send(session: psycopg.Connection, loads: Sequence[Load]) -> None:
    for load in loads:
        bodies = [
            {"org": load.org, "method": "work", "args": {"ms": round(1000 * seconds)}}
            for seconds in load.durations
        ]
        session.execute(
            "select pgmq.send(%s, body) from jsonb_array_elements(%s::jsonb) body",
            [QUEUE, json.dumps(bodies)],
        )


async def play_for_real(
    url: str, session: psycopg.Connection, loads: Sequence[Load], **knobs: int
) -> Played:
    send(session, loads)
    worker = DrainWorker(lambda: PostgrestRpc(url, KEY), work := Spans(), **KNOBS, **knobs)
    await worker.run()
    await worker.aclose()
    answered = [event for event in worker.events if isinstance(event, ClaimAnswered)]
    failed = sum(isinstance(event, ClaimFailed) for event in worker.events)
    assert len(work.spans) == sum(len(load.durations) for load in loads)
    seconds = statistics.fmean(event.seconds for event in answered)
    return Played(work, len(answered) + failed, seconds)


async def simulated(loads: Sequence[Load], call_seconds: float, **knobs: int) -> Measured:
    """In a thread: it has a loop of its own."""
    changed = load_settings({}).knobs.model_copy(update={**KNOBS, **knobs})
    scenario = Scenario(tuple(loads), knobs=changed, call_seconds=call_seconds)
    return await asyncio.to_thread(play, scenario)


def agree(real: Played, virtual: Measured) -> None:
    print(
        f"utilisation {real.work.utilisation:.3f} and {virtual.utilisation:.3f},"
        f" claims {real.claims} and {virtual.claims}, {1000 * real.call_seconds:.0f} ms a claim"
    )
    assert real.work.utilisation == pytest.approx(virtual.utilisation, abs=UTILISATION_TOLERANCE)
    assert real.claims == pytest.approx(virtual.claims, rel=CLAIMS_TOLERANCE, abs=2)


async def test_a_burst_of_one_org(url: str, session: psycopg.Connection) -> None:
    loads = [Load("a", BURST)]
    refill = await play_for_real(url, session, loads)
    agree(refill, await simulated(loads, refill.call_seconds))
    batch = await play_for_real(url, session, loads, org_slot_continuous_refill=0)
    agree(batch, await simulated(loads, batch.call_seconds, org_slot_continuous_refill=0))
    # The difference between the drivers is larger than what may move, so that agreeing says more
    # than that both are numbers.
    assert refill.work.utilisation - batch.work.utilisation > 2 * UTILISATION_TOLERANCE


@pytest.mark.parametrize("refills", [2, 4])
async def test_two_orgs_take_turns_after_a_quantum(
    url: str, session: psycopg.Connection, refills: int
) -> None:
    loads = [Load("a", BURST[:40]), Load("b", BURST[40:48])]
    quantum = {"org_slot_stream_quantum_refills": refills}
    real = await play_for_real(url, session, loads, **quantum)
    virtual = await simulated(loads, real.call_seconds, **quantum)
    agree(real, virtual)
    (index,) = (org.first_index for org in virtual.orgs if org.org == "b")
    assert real.work.first_index("b") == index == refills * CONCURRENCY


async def test_a_killed_worker_strands_the_same_and_for_as_long(
    database: str, session: psycopg.Connection
) -> None:
    """Another worker is poked ten times a second, here as there."""
    loads = [Load("a", BURST[:24])]
    knobs = {**KNOBS, "org_slot_lease_ttl_seconds": 3, "visibility_timeout_seconds": 4}
    kill_seconds, poke_seconds = 1.0, 0.1
    send(session, loads)
    with working(Orders(database, QUEUE, knobs=knobs)) as killed:
        await asyncio.to_thread(killed.wait_for, "start")
        begun = time.monotonic()
        await asyncio.sleep(kill_seconds)
        killed.kill()
    hidden = session.execute(
        f"select count(*) from pgmq.q_{QUEUE} where vt > clock_timestamp()"
    ).fetchone()
    worker = DrainWorker(lambda: PostgresRpc(database), Work(), **knobs)
    while session.execute(f"select 1 from pgmq.q_{QUEUE} limit 1").fetchone():
        await worker.run()
        await asyncio.sleep(poke_seconds)
    seconds = time.monotonic() - begun
    await worker.aclose()
    scenario = Scenario(
        tuple(loads),
        knobs=load_settings({}).knobs.model_copy(update=knobs),
        poke_seconds=poke_seconds,
        kills=(Kill(0, kill_seconds),),
    )
    virtual = await asyncio.to_thread(play, scenario)
    assert hidden == (virtual.stranded,) == (CONCURRENCY,)
    assert virtual.left == 0
    assert seconds == pytest.approx(virtual.seconds, abs=SECONDS_TOLERANCE)
