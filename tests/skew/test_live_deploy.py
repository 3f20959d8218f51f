"""The schema changes under workers that are running, forwards and backwards."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import psycopg
import pytest

from fairlease.admin.migrate import migrate
from skew.cell import FLEET, Cell
from skew.levels import FIRST_WITH_ATTACH, LEVELS, QUEUE, attach, drop, text
from skew.schemas import HEARTBEAT, SCHEMAS, SETTLE, Schema
from skew.work import left, send
from skew.workers import CONCURRENCY, MAX_PER_ORG

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from skew.api import Api

    Serve = Callable[..., AbstractContextManager[Api]]

pytestmark = pytest.mark.slow

NEWEST = SCHEMAS[LEVELS[-1]]
NOTIFIED = "pgrst"
FEED_SECONDS = 0.1
SOME = 20
MORE = {"a": 10, "b": 10, "c": 10}


async def deploy_during(cell: Cell, kinds: list[str], api: Api, deploy: Callable[[], None]) -> None:
    """The queue is never empty until well after the deploy."""
    cell.fed = True
    feeding = asyncio.create_task(feed(cell))
    draining = asyncio.create_task(cell.drain(kinds, api))
    try:
        await until_begun(cell, SOME, draining)
        await asyncio.to_thread(deploy)
        await until_begun(cell, len(cell.work.begun) + SOME, draining)
    finally:
        cell.fed = False
    await feeding
    await draining


async def feed(cell: Cell) -> None:
    while cell.fed:
        with psycopg.connect(cell.url, autocommit=True) as session:
            if len(left(session)) < SOME:
                cell.sent |= send(session, MORE)
        await asyncio.sleep(FEED_SECONDS)


async def until_begun(cell: Cell, count: int, draining: asyncio.Task[list[str]]) -> None:
    while len(cell.work.begun) < count and not draining.done():
        await asyncio.wait({draining}, timeout=FEED_SECONDS)


@pytest.mark.slow
async def test_every_migration_is_applied_in_mid_drain(
    pgmq_database: str, watching_url: str, serve: Serve
) -> None:
    SCHEMAS[FIRST_WITH_ATTACH].begin(pgmq_database)
    SCHEMAS[FIRST_WITH_ATTACH].finish(pgmq_database)
    cell = Cell.filled(NEWEST, watching_url)
    with serve(NOTIFIED) as api:
        await deploy_during(cell, ["this", "batch", "older"], api, lambda: migrate(pgmq_database))
    cell.check_all_done()


@pytest.mark.slow
async def test_functions_that_a_rollback_takes_away_are_done_without(
    pgmq_database: str, watching_url: str, serve: Serve
) -> None:
    NEWEST.begin(pgmq_database)
    NEWEST.finish(pgmq_database)
    cell = Cell.filled(NEWEST, watching_url)

    def roll_back() -> None:
        with psycopg.connect(pgmq_database, autocommit=True) as session:
            drop(session, SETTLE, HEARTBEAT)

    with serve() as api:
        await deploy_during(cell, ["this"] * FLEET, api, roll_back)
    cell.check_all_done()


@pytest.mark.slow
async def test_a_claim_that_is_dropped_and_made_anew_is_missed_for_one_run_at_most(
    pgmq_database: str, watching_url: str, serve: Serve
) -> None:
    """And it comes back with one more argument, as a later release may have it."""
    NEWEST.begin(pgmq_database)
    NEWEST.finish(pgmq_database)
    cell = Cell.filled(NEWEST, watching_url)

    def replace() -> None:
        with psycopg.connect(pgmq_database, autocommit=True) as session:
            (definition,) = session.execute(
                "select pg_get_functiondef('pgmq_public.claim_org_slot_and_read'::regproc)"
            ).fetchone() or ("",)
            drop(session, "claim_org_slot_and_read")
            session.execute("notify pgrst, 'reload schema'; select pg_sleep(0.3)")
            later = definition.replace(
                "pin_org text DEFAULT NULL::text", "pin_org text DEFAULT NULL, more int DEFAULT 0"
            )
            assert later != definition
            session.execute(later.encode())
            session.execute("select fairlease.let_workers_call('{claim_org_slot_and_read}')")
            session.execute("notify pgrst, 'reload schema'")

    with serve(NOTIFIED) as api:
        await deploy_during(cell, ["no_pin", "no_pin", "older"], api, replace)
    cell.check_all_done()


@pytest.mark.slow
async def test_a_first_install_over_an_older_release_loses_nothing(
    pgmq_database: str, watching_url: str, serve: Serve
) -> None:
    """The slots of the older release end with it: for one batch, an org may have both."""
    with psycopg.connect(pgmq_database, autocommit=True) as session:
        session.execute(text("supabase_wrappers.sql"))
        session.execute("select pgmq.create(%s)", [QUEUE])
        for function in ("claim_org_slot_and_read", "renew_org_slot", "release_org_slot"):
            session.execute(f"create function pgmq_public.{function}() returns int return 1")
        for function in ("settle_and_claim", "heartbeat_org_slot", "send_messages"):
            session.execute(f"create function pgmq_public.{function}() returns int return 1")
        session.execute(text("older_claim.sql"))
    cell = Cell.filled(Schema(LEVELS[-1], frozenset(), slots="older.slots"), watching_url)

    def install() -> None:
        migrate(pgmq_database)
        with psycopg.connect(pgmq_database, autocommit=True) as session:
            attach(session, LEVELS[-1])

    with serve(NOTIFIED) as api:
        await deploy_during(cell, ["this", "batch", "older"], api, install)
    assert cell.left() == set()
    assert set(cell.work.begun) == cell.sent
    assert set(cell.work.begun.values()) == {1}
    assert cell.work.most_of_an_org <= 2 * MAX_PER_ORG * CONCURRENCY
