from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sql.worker import done, outcome

if TYPE_CHECKING:
    import psycopg

    from sql.conftest import Hire, Send
    from sql.worker import MovableClock

HOUR = 3600


def maintain(session: psycopg.Connection, limit: int = 1000) -> dict[str, Any]:
    row = session.execute("select fairlease.maintain(%s)", (limit,)).fetchone()
    assert row is not None
    return row[0]


def count(session: psycopg.Connection, table: str) -> int:
    row = session.execute(f"select count(*) from {table}").fetchone()
    assert row is not None
    return row[0]


def test_lapsed_slots_are_cleared_and_live_ones_are_not(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a", "b")
    hire("h1").claim(lease_ttl_seconds=10)
    hire("h2").claim(lease_ttl_seconds=60)
    clock.advance(10)
    assert maintain(connection)["lapsed_slots"] == 1
    rows = connection.execute("select holder from fairlease.seats where holder is not null")
    assert rows.fetchall() == [("h2",)]


def test_archive_and_dead_letters_are_kept_as_long_as_the_queue_says(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('jobs', retention => '1 hour')")
    for _ in range(2):
        send("a", "a")
        one, two = hire().claim(n=2).deliveries
        hire().settle_only(done(one), outcome("dead", two))
        clock.advance(HOUR / 2 + 1)
    assert maintain(connection)["queue:jobs"] == {
        "archive": 1,
        "dead_letters": 1,
        "message_state": 0,
    }
    assert (count(connection, "pgmq.a_jobs"), count(connection, "fairlease.dead_letters")) == (1, 1)


def test_without_a_retention_everything_is_kept(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a")
    hire().settle_only(done(hire().claim().deliveries[0]))
    clock.advance(1e8)
    maintain(connection)
    assert count(connection, "pgmq.a_jobs") == 1


def test_state_of_messages_that_left_otherwise_is_removed(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a", "a")
    one, two = hire().claim(n=2).deliveries
    hire().settle_only(outcome("retry", one), outcome("retry", two))
    connection.execute("select pgmq.archive('jobs', %s)", (one[0],))
    assert maintain(connection)["queue:jobs"]["message_state"] == 1
    rows = connection.execute("select msg_id from fairlease.message_state").fetchall()
    assert rows == [(two[0],)]


def test_each_step_is_bounded(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('jobs', retention => '1 hour')")
    send(*["a"] * 10)
    hire().settle_only(*[done(delivery) for delivery in hire().claim(n=10).deliveries])
    clock.advance(2 * HOUR)
    assert [maintain(connection, 4)["queue:jobs"]["archive"] for _ in range(4)] == [4, 4, 2, 0]


def test_old_leases_and_quiet_circuits_are_forgotten(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a")
    hire().claim()
    hire().release()
    connection.execute("select fairlease.open_circuit('open', interval '60 days')")
    connection.execute("select fairlease.open_circuit('quiet', interval '1 hour')")
    connection.execute("select fairlease.close_circuit('quiet')")
    assert maintain(connection)["history"] == 0
    clock.advance(31 * 24 * HOUR)
    assert maintain(connection)["history"] == 2
    assert connection.execute("select org from fairlease.circuits").fetchall() == [("open",)]


def test_a_dropped_queue_does_not_stop_the_others(
    send: Send, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('dropped')")
    connection.execute("select pgmq.drop_queue('dropped')")
    assert "queue:jobs" in maintain(connection)


def test_an_archive_that_was_partitioned_since_loses_only_what_is_over(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    """A row's place says nothing without its partition: each has a first row."""
    connection.execute("select fairlease.attach_queue('jobs', retention => '1 hour')")
    connection.execute("drop table pgmq.a_jobs")
    connection.execute(
        "create table pgmq.a_jobs (like pgmq.q_jobs, archived_at timestamptz not null) "
        "partition by list (msg_id)"
    )
    for number in (1, 2, 3):
        connection.execute(
            f"create table pgmq.a_jobs_{number} partition of pgmq.a_jobs for values in ({number})"
        )
        send("a")
        [delivery] = hire().claim().deliveries
        assert hire().settle_only(done(delivery)) == ["applied"]
        clock.advance(HOUR / 2)
    assert maintain(connection)["queue:jobs"]["archive"] == 1
    kept = connection.execute("select msg_id from pgmq.a_jobs order by 1").fetchall()
    assert kept == [(2,), (3,)]
