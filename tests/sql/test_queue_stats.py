"""What monitors see: every message counted in one state, and how long the oldest has been due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sql.worker import done, outcome

if TYPE_CHECKING:
    import psycopg

    from sql.conftest import Hire, Send
    from sql.worker import MovableClock

MINUTE = 60


def stats(session: psycopg.Connection, queue: str = "jobs") -> dict[str, Any]:
    row = session.execute("select pgmq_public.queue_stats()").fetchone()
    assert row is not None
    (found,) = [entry for entry in row[0] if entry["queue"] == queue]
    return found


def sequential_scans(session: psycopg.Connection) -> int:
    session.execute("select pg_stat_force_next_flush()")
    row = session.execute(
        "select seq_scan from pg_stat_user_tables where relname = 'q_jobs'"
    ).fetchone()
    assert row is not None
    return row[0]


def test_each_message_is_counted_in_one_state(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a", "a", "a", "b")
    send("late", sleep_seconds=MINUTE)
    retried, settled, _running = hire().claim(n=3).deliveries
    hire().settle_only(outcome("retry", retried, after_ms=30_000), done(settled))
    found = stats(connection)
    assert (found["ready"], found["running"], found["delayed"]) == (1, 1, 2)


def test_the_oldest_is_the_one_that_has_been_due_longest_and_delays_do_not_age(
    send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    assert stats(connection)["oldest_age_seconds"] == 0
    send("late", sleep_seconds=5 * MINUTE)
    clock.advance(MINUTE)
    assert stats(connection)["oldest_age_seconds"] == 0
    send("a")
    clock.advance(10)
    assert stats(connection)["oldest_age_seconds"] == pytest.approx(10, abs=1)
    clock.advance(5 * MINUTE)
    assert stats(connection)["oldest_age_seconds"] == pytest.approx(310, abs=1)


def test_dead_letters_are_counted_and_new_for_a_quarter_of_an_hour(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a", "a")
    hire().settle_only(*[outcome("dead", d) for d in hire().claim(n=2).deliveries])
    found = stats(connection)
    assert (found["dead_letters"], found["dead_letters_new"]) == (2, 2)
    clock.advance(16 * MINUTE)
    found = stats(connection)
    assert (found["dead_letters"], found["dead_letters_new"]) == (2, 0)


def test_a_circuit_counts_where_it_holds_messages_back_and_while_it_is_open(
    send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('other')")
    connection.execute("select fairlease.open_circuit('a', interval '1 hour')")
    connection.execute("select fairlease.open_circuit('elsewhere', interval '1 hour')")
    send("a")
    assert stats(connection)["circuits_open"] == 1
    assert stats(connection, "other")["circuits_open"] == 0
    clock.advance(61 * MINUTE)
    assert stats(connection)["circuits_open"] == 0


def test_a_dropped_queue_is_left_out(send: Send, connection: psycopg.Connection) -> None:
    connection.execute("select fairlease.attach_queue('dropped')")
    connection.execute("select pgmq.drop_queue('dropped')")
    row = connection.execute("select pgmq_public.queue_stats()").fetchone()
    assert row is not None
    assert [entry["queue"] for entry in row[0]] == ["jobs"]


def test_a_backlog_is_counted_up_to_a_bound_and_never_scanned(
    send: Send, connection: psycopg.Connection
) -> None:
    send(*["a"] * 30)
    bounded = connection.execute(
        "select fairlease.measure_queue(q, 10, fairlease.now_()) from fairlease.queues q"
    ).fetchone()
    assert bounded is not None
    assert bounded[0]["ready"] == 10
    before = sequential_scans(connection)
    stats(connection)
    assert sequential_scans(connection) == before


def test_a_worker_may_ask_for_upkeep_without_a_right_on_any_table(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('jobs', retention => '1 hour')")
    send("a")
    hire().settle_only(done(hire().claim().deliveries[0]))
    clock.advance(61 * MINUTE)
    connection.execute("set role service_role")
    row = connection.execute("select pgmq_public.maintain_queues(10)").fetchone()
    connection.execute("reset role")
    assert row is not None
    assert row[0]["queue:jobs"]["archive"] == 1
