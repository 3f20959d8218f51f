"""Attaching, pausing and detaching a queue that is in use: who waits, and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    from race.conftest import Hire

    Fixture = Any

RESOLVER = (
    "create function public.tenant_of(message jsonb) returns text language sql as "
    "$$ select message ->> 'tenant' $$"
)
PAUSE = "select fairlease.pause_queue('jobs')"
REMAKE = "select fairlease.remake_queue_functions()"
ATTACH = "select fairlease.attach_queue('jobs')"
DETACH = "select fairlease.detach_queue('jobs')"


@pytest.mark.parametrize("statement", [PAUSE, REMAKE, ATTACH])
def test_nobody_waits_for_a_transaction_that_has_sent(
    hire: Hire, send: Fixture, connection: psycopg.Connection, statement: str
) -> None:
    connection.execute(RESOLVER)
    connection.execute(
        "select fairlease.attach_queue('jobs', resolver => 'public.tenant_of(jsonb)')"
    )
    sender = hire("app", open_transaction=True).session
    sender.execute("select pgmq.send('jobs', '{}')")
    connection.execute("set lock_timeout = '2s'")
    connection.execute(statement)
    sender.commit()
    connection.execute("select pgmq.send('jobs', '{\"tenant\": \"t\"}')")
    row = connection.execute("select headers ->> 'x-org' from pgmq.q_jobs where msg_id = 2")
    assert row.fetchone() == ("t",)


def test_a_queue_whose_resolver_was_dropped_can_be_paused(
    hire: Hire, send: Fixture, connection: psycopg.Connection
) -> None:
    connection.execute(RESOLVER)
    connection.execute(
        "select fairlease.attach_queue('jobs', resolver => 'public.tenant_of(jsonb)')"
    )
    send("a")
    connection.execute("drop function public.tenant_of(jsonb)")
    connection.execute(PAUSE)
    assert hire("h1").claim().cause == "paused"
    with pytest.raises(psycopg.errors.RaiseException, match="resolver"):
        connection.execute(ATTACH)


@pytest.mark.parametrize("second", [PAUSE, ATTACH, REMAKE, DETACH])
@pytest.mark.parametrize("first", [PAUSE, ATTACH, REMAKE])
def test_whoever_makes_a_queues_functions_does_so_alone(
    hire: Hire, call: Fixture, first: str, second: str
) -> None:
    """Two that replace one function at a time end with "tuple concurrently updated"."""
    one, two = hire("op1", open_transaction=True), hire("op2")
    one.session.execute(first)
    waiting = call(two).start(two.session.execute, second).seen_waiting()
    one.session.commit()
    waiting.result()


def test_attaching_anew_takes_away_before_it_builds(
    hire: Hire, send: Fixture, call: Fixture, connection: psycopg.Connection
) -> None:
    """A claim has looked and is about to read: it must not wait for a build that waits for it."""
    send("a")
    connection.execute(RESOLVER)
    connection.execute(
        "select fairlease.attach_queue('jobs', resolver => 'public.tenant_of(jsonb)')"
    )
    connection.execute("update fairlease.queues set resolver = null")
    claim, operator = hire("h1", open_transaction=True), hire("op")
    claim.session.execute("select from pgmq.q_jobs")
    waiting = call(operator).start(
        operator.session.execute, "select fairlease.attach_queue('jobs', unique_keys => true)"
    )
    waiting.seen_waiting()
    assert claim.plain().status == "claimed"
    claim.session.commit()
    waiting.result()


def test_a_send_that_met_a_change_of_the_rule_for_keys_is_to_be_called_again(
    hire: Hire, send: Fixture, call: Fixture, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('jobs', unique_keys => true)")
    operator, sender = hire("op", open_transaction=True), hire("app")
    operator.session.execute("select fairlease.attach_queue('jobs', unique_keys => false)")

    def post() -> Any:
        return sender.session.execute(
            "select pgmq_public.send_messages('jobs', %s)", (Jsonb([{"message": {"n": 1}}]),)
        ).fetchone()

    waiting = call(sender).start(post).seen_waiting()
    operator.session.commit()
    with pytest.raises(psycopg.errors.LockNotAvailable, match="call it again"):
        waiting.result()
    assert post()[0]["existing"] == []
