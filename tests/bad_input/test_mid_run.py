"""What breaks in the middle of a run: nothing is lost, nothing is done for ever, it is said."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from bad_input.bench import QUEUE, Bench
from contract.api import KEY, gateway
from fairlease import Context, Dead
from fairlease.events import HandlerEnded
from fairlease.local.gateway import Fault, FaultKind, Faults, GatewayConfig, running_gateway
from fairlease.local.gateway.tokens import sign
from fairlease.transports.postgrest import PostgrestRpc

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

    from fairlease.local.postgres import LocalPostgres


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Callable[[str], list[dict[str, Any]]]:
    """The fields of the lines of this name that a host shows."""

    def lines(name: str) -> list[dict[str, Any]]:
        return [
            record.__dict__["fields"]
            for record in caplog.records
            if record.levelno >= logging.WARNING and record.getMessage() == name
        ]

    return lines


def counting(bench: Bench, on_first: Callable[[], object] = lambda: None) -> list[int]:
    """The messages that ran, in order; the first one meets what happens to the database."""
    ran: list[int] = []

    @bench.worker.handler("m")
    async def m(args: dict[str, Any], ctx: Context) -> None:
        ran.append(ctx.msg_id)
        if len(ran) == 1:
            on_first()

    return ran


async def test_an_archive_that_is_dropped_keeps_no_success_from_being_one(
    bench: Bench, warned: Callable[[str], list[dict[str, Any]]]
) -> None:
    drop = f"drop table pgmq.a_{QUEUE}".encode()
    ran = counting(bench, lambda: bench.connection.execute(drop))
    ids = [bench.put({"method": "m", "org": "a"}) for _ in range(3)]
    for _ in range(3):
        await bench.run()
        bench.due()
    assert sorted(ran) == ids
    assert [bench.where(msg_id) for msg_id in ids] == [["conflicts"]] * 3
    assert len(warned("outcome_changed")) == 3
    assert "is missing: moved to archive_conflicts" in warned("outcome_changed")[0]["note"]

    bench.connection.execute("select pgmq.create(%s)", [QUEUE])
    later = bench.put({"method": "m", "org": "a"})
    await bench.run()
    assert bench.where(later) == ["archive"]


async def test_a_dead_letter_that_cannot_be_written_stays_in_its_queue_and_is_said(
    bench: Bench, warned: Callable[[str], list[dict[str, Any]]]
) -> None:
    @bench.worker.handler("m")
    async def m(args: dict[str, Any], ctx: Context) -> None:
        if ctx.org == "a":
            raise Dead("no such user")

    broken, good = (bench.put({"method": "m", "org": org}) for org in ("a", "b"))
    bench.connection.execute(
        "alter table fairlease.dead_letters add constraint broken check (org <> 'a')"
    )
    await bench.run()
    assert (bench.where(broken), bench.where(good)) == (["queue"], ["archive"])
    (said,) = warned("settle_failed")
    assert (said["msg_ids"], said["final"]) == ((broken,), True)
    assert said["error"].startswith('refused: new row for relation "dead_letters" violates')

    bench.connection.execute("alter table fairlease.dead_letters drop constraint broken")
    bench.due()
    await bench.run()
    assert bench.where(broken) == ["dead"]
    assert bench.value("select reason from fairlease.dead_letters") == "no such user"


async def test_a_queue_that_is_dropped_is_refused_and_the_others_are_drained(
    bench: Bench, warned: Callable[[str], list[dict[str, Any]]]
) -> None:
    bench.connection.execute("select fairlease.attach_queue('other')")
    bench.queues = (QUEUE, "other")
    drop = f"select pgmq.drop_queue('{QUEUE}')".encode()
    ran = counting(bench, lambda: bench.connection.execute(drop))
    for _ in range(12):
        bench.put({"method": "m", "org": "a"})
    others = [bench.put({"method": "m", "org": "b"}, "other") for _ in range(5)]
    assert (await bench.run()).reason == "idle"
    assert len(ran) == 4 + 5
    assert {event.outcome for event in bench.said(HandlerEnded)} == {"Done"}
    assert [bench.where(msg_id, "other") for msg_id in others] == [["archive"]] * 5
    (refused,) = warned("queue_refused")
    assert refused["queue"] == QUEUE
    assert "create it, and attach it again" in refused["error"]
    # Nobody holds a slot of what is gone.
    assert bench.value("select count(*) from fairlease.seats where holder is not null") == 0


async def test_settles_answered_by_a_gateways_html_are_repeated_and_no_handler_runs_again(
    postgres: LocalPostgres,
    database: str,
    connection: psycopg.Connection,
    warned: Callable[[str], list[dict[str, Any]]],
) -> None:
    connection.execute("select fairlease.attach_queue(%s)", [QUEUE])
    faults = Faults()
    with gateway(postgres, database, faults) as url:
        bench = Bench(database, lambda: PostgrestRpc(url, KEY), connection)
        bad = [
            Fault(FaultKind.HTML, rpc="settle_and_claim", status=502),
            Fault(FaultKind.HTML_AFTER, rpc="settle_and_claim", status=502),
        ]
        ran = counting(bench, lambda: faults.add(*bad))
        ids = [bench.put({"method": "m", "org": "a"}) for _ in range(4)]
        await bench.run()
    assert not faults.active()
    assert sorted(ran) == ids
    assert [bench.where(msg_id) for msg_id in ids] == [["archive"]] * 4
    assert warned("claim_failed") or warned("settle_failed")
    assert not any(line["final"] for line in warned("settle_failed"))
    assert all(
        len(line["error"]) <= 200 for line in warned("claim_failed") + warned("settle_failed")
    )


@pytest.mark.slow
async def test_a_key_that_expires_ends_the_run_by_name_and_costs_no_attempt_but_the_open_one(
    postgres: LocalPostgres,
    database: str,
    connection: psycopg.Connection,
    warned: Callable[[str], list[dict[str, Any]]],
) -> None:
    """The gateway allows 30 s of skew, as PostgREST does."""
    connection.execute("select fairlease.attach_queue(%s)", [QUEUE])
    secret = "a-secret-of-the-bad-input-tests-32-bytes"
    config = GatewayConfig(
        database_url=postgres.url(urlsplit(database).path.lstrip("/"), "authenticator"),
        jwt_secret=secret,
        db_schemas=("public", "pgmq_public"),
        db_pool=4,
    )
    expires = int(time.time()) + 2
    keys = [sign({"role": "service_role", "exp": expires - 31}, secret)]
    with running_gateway(config) as url:
        bench = Bench(database, lambda: PostgrestRpc(url, keys[-1]), connection)
        bench.knobs = {"visibility_timeout_seconds": 2, "org_slot_lease_ttl_seconds": 3}

        @bench.worker.handler("m")
        async def m(args: dict[str, Any], ctx: Context) -> None:
            if len(keys) == 1:
                await asyncio.sleep(expires - time.time() + 0.1)

        ids = [bench.put({"method": "m", "org": "a"}) for _ in range(6)]
        report = await bench.run()
        assert report.reason == "failures"
        assert any("JWT expired" in line["error"] for line in warned("claim_failed"))
        assert any(
            "JWT expired" in line["error"] and line["final"] for line in warned("settle_failed")
        )
        assert [bench.where(msg_id) for msg_id in ids] == [["queue"]] * 6

        keys.append(sign({"role": "service_role", "exp": expires + 3600}, secret))
        bench.due()
        bench.connection.execute(
            "update fairlease.seats set expires_at = now() where holder is not null"
        )
        await bench.run()
    assert [bench.where(msg_id) for msg_id in ids] == [["archive"]] * 6
    assert [event.attempt for event in bench.said(HandlerEnded)].count(2) == report.messages
