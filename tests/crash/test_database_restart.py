"""The database goes away in mid-run and comes back: the next poke recovers, and all is done."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import psycopg
import pytest

from fairlease.admin.migrate import migrate
from fairlease.local.bootstrap import bootstrap
from fairlease.local.gateway import GatewayConfig, running_gateway
from fairlease.local.postgres import LocalPostgres, available_port
from fairlease.transports.postgres import PostgresRpc
from fairlease.transports.postgrest import PostgrestRpc
from skew.work import Work, archived, left, send
from skew.workers import DrainWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fairlease.rpc import Rpc

pytestmark = pytest.mark.slow

KEY = "sb_secret_restart"
DOWN_SECONDS = 0.5
# Longer than the database is away: what was handled is settled then, not handled again.
KNOBS = {"visibility_timeout_seconds": 15, "org_slot_lease_ttl_seconds": 6}
ORGS = {"a": 25, "b": 25, "c": 25}
BEFORE = 10


@pytest.fixture
def own_postgres(tmp_path: Path, postgres_binaries: Path | None) -> Iterator[LocalPostgres]:
    server = LocalPostgres(tmp_path / "data", binaries=postgres_binaries, port=available_port(None))
    with server:
        bootstrap(server)
        migrate(server.url())
        with psycopg.connect(server.url(), autocommit=True) as session:
            session.execute("select fairlease.attach_queue('skew')")
        yield server


def crash(server: LocalPostgres) -> None:
    """As a machine that loses power does: nobody says goodbye, and the log is replayed."""
    assert server._server is not None
    os.kill(server._server.pid, signal.SIGQUIT)
    server._server.wait(10)
    server.stop()


async def drain_across(
    server: LocalPostgres, connect: Callable[[], Rpc], stop: Callable[[LocalPostgres], None]
) -> tuple[set[int], Work]:
    with psycopg.connect(server.url(), autocommit=True) as session:
        sent = send(session, ORGS, ms=50)
    work = Work()
    fleet = [DrainWorker(connect, work, **KNOBS) for _ in range(2)]
    pokes = [asyncio.create_task(poke(worker, work, len(sent))) for worker in fleet]
    while len(work.begun) < BEFORE:
        await asyncio.wait(pokes, timeout=0.05)
    await asyncio.to_thread(stop, server)
    await asyncio.sleep(DOWN_SECONDS)
    await asyncio.to_thread(server.start)
    async with asyncio.timeout(90):
        await asyncio.gather(*pokes)
    for worker in fleet:
        await worker.aclose()
    return sent, work


async def poke(worker: DrainWorker, work: Work, messages: int) -> None:
    while len(work.begun) < messages:
        await worker.run()
        await asyncio.sleep(0.1)


def check(server: LocalPostgres, sent: set[int], work: Work) -> None:
    with psycopg.connect(server.url(), autocommit=True) as session:
        assert left(session) == set()
        assert sorted(archived(session)) == sorted(sent)
    assert set(work.begun) == sent
    # What a claim had hidden whose answer was lost is done once, later; nothing is done twice.
    assert set(work.begun.values()) == {1}
    assert work.most_of_an_org <= 2


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("stop", [LocalPostgres.stop, crash], ids=["shutdown", "crash"])
async def test_a_direct_worker_recovers(
    own_postgres: LocalPostgres, stop: Callable[[LocalPostgres], None]
) -> None:
    url = own_postgres.url()
    sent, work = await drain_across(own_postgres, lambda: PostgresRpc(url), stop)
    check(own_postgres, sent, work)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("stop", [LocalPostgres.stop, crash], ids=["shutdown", "crash"])
async def test_a_worker_behind_the_gateway_recovers(
    own_postgres: LocalPostgres, stop: Callable[[LocalPostgres], None]
) -> None:
    config = GatewayConfig(
        database_url=own_postgres.url(user="authenticator"),
        jwt_secret="a-secret-of-the-restart-tests-32-bytes",
        db_schemas=("public", "pgmq_public"),
        api_keys={KEY: "service_role"},
        db_pool=6,
    )
    with running_gateway(config) as url:
        sent, work = await drain_across(own_postgres, lambda: PostgrestRpc(url, KEY), stop)
    check(own_postgres, sent, work)


@pytest.mark.slow
async def test_a_run_with_no_database_ends_and_says_so(own_postgres: LocalPostgres) -> None:
    url = own_postgres.url()
    worker = DrainWorker(lambda: PostgresRpc(url), Work(), **KNOBS)
    own_postgres.stop()
    assert await worker.run() == "unreachable"
    await worker.aclose()
