"""A real host that sends spans to a collector over real HTTP."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from psycopg.types.json import Jsonb

from fairlease.admin import queues
from stack.hosts import eventually, running_host
from stack.test_host_database import archived, ready, write_adder
from unit.telemetry.spans import collector, said

if TYPE_CHECKING:
    from pathlib import Path

    import psycopg

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SOON = {"OTEL_BSP_SCHEDULE_DELAY": "100"}


def send_traced(connection: psycopg.Connection, database: str, count: int = 1) -> None:
    queues.ensure(database, ["sums"])
    message = {
        "message": {"method": "add", "args": {"a": 1, "b": 2}},
        "org": "acme",
        "headers": {"traceparent": f"00-{TRACE}-{PARENT}-01"},
    }
    connection.execute("select pgmq_public.send_messages('sums', %s)", (Jsonb([message] * count),))


@pytest.mark.parametrize("profile", ["business", "verbose", "everything"])
def test_a_message_is_a_span_of_its_senders_trace(
    connection: psycopg.Connection, database: str, tmp_path: Path, profile: str
) -> None:
    send_traced(connection, database)
    with collector() as received:
        variables = {
            "FAIRLEASE_DATABASE_URL": database,
            "OTEL_EXPORTER_OTLP_ENDPOINT": received.url,
            "FAIRLEASE_TRACE_PROFILE": profile,
            **SOON,
        }
        with running_host(write_adder(tmp_path), **variables) as host:
            said_issues = ready(host).json()["knob_issues"]
            assert ("FAIRLEASE_TRACE_PROFILE" in str(said_issues)) == (profile == "everything")
            host.poke("adder")
            assert received.wait_for(lambda: bool(received.named("add")))
            if profile == "verbose":
                assert received.wait_for(lambda: bool(received.named("run")))
            host.process.terminate()
            assert host.wait() == 0
    [(service, span)] = [entry for entry in received.spans if entry[1].name == "add"]
    assert (service, span.trace_id.hex(), span.parent_span_id.hex()) == ("fairlease", TRACE, PARENT)
    assert said(span)["fairlease.org"] == "acme"
    names = {entry[1].name for entry in received.spans}
    assert names == {"add"} if profile != "verbose" else {"run", "claim", "add"} < names


@pytest.mark.slow
def test_a_dead_collector_slows_no_drain_and_no_end(
    connection: psycopg.Connection, database: str, tmp_path: Path
) -> None:
    send_traced(connection, database, count=200)
    with collector(dead=True) as dead:
        variables = {
            "FAIRLEASE_DATABASE_URL": database,
            "OTEL_EXPORTER_OTLP_ENDPOINT": dead.url,
            **SOON,
        }
        with running_host(write_adder(tmp_path), **variables) as host:
            began = time.monotonic()
            host.poke("adder")
            assert eventually(lambda: archived(database) == 200)
            host.process.terminate()
            assert host.wait() == 0
            assert time.monotonic() - began < 10
