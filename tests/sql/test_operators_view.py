"""What an operator asks of a queue: who waits and why; and what an operator does to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from psycopg.rows import dict_row

from sql.worker import done, outcome

if TYPE_CHECKING:
    import psycopg

    from sql.conftest import Hire, Send
    from sql.worker import MovableClock


def orgs(session: psycopg.Connection, most: int = 1000) -> dict[str, tuple[int, int, int]]:
    cursor = session.cursor(row_factory=dict_row)
    rows = cursor.execute(
        "select m.* from fairlease.queues q, fairlease.measure_orgs(q, %s, fairlease.now_()) m",
        (most,),
    ).fetchall()
    return {row["org"]: (row["ready"], row["running"], row["delayed"]) for row in rows}


def holdups(session: psycopg.Connection) -> dict[str, Any]:
    row = session.execute(
        "select fairlease.measure_holdups(q, fairlease.now_()) from fairlease.queues q"
    ).fetchone()
    assert row is not None
    return row[0]


def purge(session: psycopg.Connection, until: int = 1000, limit: int = 1000) -> dict[str, Any]:
    row = session.execute(
        "select fairlease.purge_waiting(q, 0, %s, %s) from fairlease.queues q", (until, limit)
    ).fetchone()
    assert row is not None
    return row[0]


def left(session: psycopg.Connection) -> list[int]:
    rows = session.execute("select msg_id from pgmq.q_jobs order by 1").fetchall()
    return [row[0] for row in rows]


def test_every_message_of_an_org_is_counted_in_one_state(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a", "a", "a", "b")
    send("late", sleep_seconds=60)
    retried, settled, _running = hire().claim(n=3).deliveries
    hire().settle_only(outcome("retry", retried, after_ms=30_000), done(settled))
    assert orgs(connection) == {"a": (0, 1, 1), "b": (1, 0, 0), "late": (0, 0, 1)}


def test_the_count_of_one_org_ends_and_hides_no_other(
    send: Send, connection: psycopg.Connection
) -> None:
    send(*["a"] * 20, "b", 'c"; drop table x')
    assert orgs(connection, most=5) == {
        "a": (5, 0, 0),
        "b": (1, 0, 0),
        'c"; drop table x': (1, 0, 0),
    }


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        ("paused = true", "orgs_paused"),
        ("max_per_org = 1", "orgs_at_limit"),
        ("starts_per_minute = 1", "orgs_out_of_tokens"),
    ],
)
def test_what_holds_a_queue_up_is_named(
    hire: Hire,
    send: Send,
    clock: MovableClock,
    connection: psycopg.Connection,
    limits: str,
    name: str,
) -> None:
    connection.execute("insert into fairlease.org_limits (org) values ('a'), ('idle')")
    send("a")
    assert holdups(connection)[name] == 0
    connection.execute(f"update fairlease.org_limits set {limits} where org <> 'a'")
    if name != "orgs_paused":
        connection.execute(f"update fairlease.org_limits set {limits} where org = 'a'")
        hire().claim()
        send("a")
        assert holdups(connection)["slots"] == 1
    else:
        connection.execute("update fairlease.org_limits set paused = true where org = 'a'")
    assert holdups(connection)[name] == 1


def test_purge_leaves_what_runs_and_what_was_sent_later(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    waiting = send("a", "a", "a", sleep_seconds=0)
    [delayed] = send("late", sleep_seconds=60)
    retried, running = hire().claim(n=2).deliveries
    hire().settle_only(outcome("retry", retried, after_ms=30_000))
    [later] = send("a")
    assert purge(connection, until=delayed) == {"removed": 3, "running": 1, "last_id": delayed}
    assert left(connection) == [running[0], later]
    assert running[0] in waiting
    assert connection.execute("table fairlease.message_state").fetchall() == []
    assert hire().settle_only(done(running)) == ["applied"]


def test_purge_passes_over_locked_messages_without_ending_early(
    send: Send, database: str, connection: psycopg.Connection
) -> None:
    import psycopg  # noqa: PLC0415 - the fixtures' type elsewhere

    ids = send(*"aaaaa")
    with psycopg.connect(database) as other:
        other.execute("select from pgmq.q_jobs where msg_id <= %s for update", (ids[1],))
        assert purge(connection, limit=2)["last_id"] == ids[3]
    assert left(connection) == [ids[0], ids[1], ids[4]]


def pause(session: psycopg.Connection, paused: bool = True) -> bool:
    row = session.execute("select fairlease.pause_queue('jobs', %s)", (paused,)).fetchone()
    assert row is not None
    return row[0]


def test_a_paused_queue_hands_out_nothing_and_says_so(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    assert pause(connection)
    assert hire().claim().status == "no_demand"
    send("a")
    answer = hire().claim()
    assert (answer.status, answer.cause) == ("org_capacity", "paused")
    assert hire().claim(pin_org="a").status == "no_demand"
    assert hire().plain().status == "org_capacity"
    assert connection.execute("select from fairlease.seats where holder <> ''").fetchall() == []


def test_what_runs_when_a_queue_is_paused_is_extended_and_settled(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a", "a")
    worker = hire()
    [delivery] = worker.claim().deliveries
    pause(connection)
    assert worker.heartbeat([delivery])["extended"] == [delivery[0]]
    answer = worker.settle([done(delivery)], pin_org="a")
    assert (answer.results, answer.status) == (["applied"], "no_demand")


def test_a_pause_outlives_a_new_attach_and_a_migration_and_ends_when_told(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a")
    assert (pause(connection), pause(connection)) == (True, False)
    connection.execute("select fairlease.attach_queue('jobs', max_attempts => 3)")
    connection.execute("select fairlease.remake_queue_functions()")
    assert hire().claim().cause == "paused"
    assert pause(connection, paused=False)
    assert hire().claim().status == "claimed"
