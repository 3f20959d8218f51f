"""A bad road between worker and database, for a whole drain: every message is done once."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest

from fairlease.local.gateway import Fault, FaultKind, Faults, GatewayConfig, running_gateway
from fairlease.transports.postgrest import PostgrestRpc
from skew.work import Work, archived, left, send
from skew.workers import CONCURRENCY, GLOBAL_CAP, MAX_PER_ORG, DrainWorker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlease.local.postgres import LocalPostgres

pytestmark = pytest.mark.slow

KEY = "sb_secret_faults"
QUEUE = "skew"
VISIBILITY_SECONDS = 4
KNOBS = {"visibility_timeout_seconds": VISIBILITY_SECONDS, "org_slot_lease_ttl_seconds": 3}
ORGS = {"a": 12, "b": 10, "c": 10}

#: Each lets the call take effect or not, and says neither.
KINDS = [
    Fault(FaultKind.HTML, status=502),
    Fault(FaultKind.HTML_AFTER, status=503),
    Fault(FaultKind.EMPTY, status=502),
    Fault(FaultKind.HTML_AFTER, status=200),
    Fault(FaultKind.EMPTY_AFTER, status=200),
    Fault(FaultKind.CUT),
    Fault(FaultKind.BROKEN_JSON),
    Fault(FaultKind.RESET_BEFORE),
    Fault(FaultKind.RESET_AFTER),
    Fault(FaultKind.SLOW, seconds=0.3),
    Fault(FaultKind.DELAY, seconds=0.3),
    Fault(FaultKind.CLOSE_IDLE),
    Fault(FaultKind.JWT_ISSUED_AT_FUTURE),
]
CALLS = ["settle_and_claim", "heartbeat_org_slot", "release_org_slot"]


@pytest.fixture
def faults() -> Faults:
    return Faults(random.Random(7))


@pytest.fixture
def url(postgres: LocalPostgres, database: str, faults: Faults) -> Iterator[str]:
    config = GatewayConfig(
        database_url=postgres.url(urlsplit(database).path.lstrip("/"), "authenticator"),
        jwt_secret="a-secret-of-the-fault-tests-of-32-bytes",
        db_schemas=("public", "pgmq_public"),
        api_keys={KEY: "service_role"},
        db_pool=6,
        faults=faults,
    )
    with psycopg.connect(database, autocommit=True) as session:
        session.execute("select fairlease.attach_queue(%s)", [QUEUE])
    with running_gateway(config) as found:
        yield found


async def drain(url: str, database: str, seconds: float = 40.0) -> tuple[set[int], Work]:
    """Three workers, poked until the queue is empty."""
    with psycopg.connect(database, autocommit=True) as session:
        sent = send(session, ORGS)
    work = Work()
    fleet = [DrainWorker(lambda: PostgrestRpc(url, KEY), work, **KNOBS) for _ in range(3)]
    async with asyncio.timeout(seconds), work.seats_sampled(database, "fairlease.seats"):
        await asyncio.gather(*(poke(worker, database) for worker in fleet))
    for worker in fleet:
        await worker.aclose()
    return sent, work


async def poke(worker: DrainWorker, database: str) -> None:
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as session:
        while await (await session.execute(f"select 1 from pgmq.q_{QUEUE} limit 1")).fetchone():
            await worker.run()
            await asyncio.sleep(0.1)


def check(database: str, sent: set[int], work: Work) -> None:
    with psycopg.connect(database, autocommit=True) as session:
        assert left(session, QUEUE) == set()
        assert sorted(archived(session, QUEUE)) == sorted(sent)
    assert set(work.begun) == sent
    assert set(work.begun.values()) == {1}, work.begun
    assert work.most_seats <= GLOBAL_CAP
    assert work.most_seats_of_an_org <= MAX_PER_ORG
    assert work.most_of_an_org <= MAX_PER_ORG * CONCURRENCY


async def test_a_mix_of_everything_costs_time_and_nothing_else(
    url: str, database: str, faults: Faults
) -> None:
    for fault in KINDS:
        faults.add(Fault(fault.kind, status=fault.status, seconds=fault.seconds, probability=0.2))
    sent, work = await drain(url, database)
    check(database, sent, work)
    assert not faults.active()


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", KINDS, ids=lambda f: f"{f.kind}-{f.status}")
async def test_each_fault_of_each_call_costs_time_and_nothing_else(
    url: str, database: str, faults: Faults, fault: Fault, call: str
) -> None:
    times = 1 if call == "release_org_slot" else 3
    faults.add(Fault(fault.kind, rpc=call, status=fault.status, seconds=fault.seconds, times=times))
    sent, work = await drain(url, database)
    check(database, sent, work)


@pytest.mark.slow
async def test_one_call_in_seven_goes_wrong(url: str, database: str, faults: Faults) -> None:
    faults.add_chaos(0.15)
    sent, work = await drain(url, database, 50.0)
    faults.clear()
    check(database, sent, work)


@pytest.mark.slow
async def test_an_older_database_behind_a_bad_road_loses_nothing(
    url: str, database: str, faults: Faults
) -> None:
    """Successes are archived without a fence: an archive that is repeated is done once."""
    with psycopg.connect(database, autocommit=True) as session:
        session.execute(
            "drop function pgmq_public.settle_and_claim, pgmq_public.heartbeat_org_slot"
        )
        session.execute("notify pgrst, 'reload schema'")
    faults.add_chaos(0.15)
    sent, work = await drain(url, database, 50.0)
    faults.clear()
    with psycopg.connect(database, autocommit=True) as session:
        assert left(session, QUEUE) == set()
        assert sorted(archived(session, QUEUE)) == sorted(sent)
    assert set(work.begun) == sent
