"""Outcomes: fenced by (id, ct), idempotent, one bad one alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from sql.worker import done, outcome

if TYPE_CHECKING:
    from sql.conftest import Hire, Send
    from sql.worker import MovableClock

VERBS = ["done", "retry", "snooze", "give_back", "dead"]


def where(session: psycopg.Connection, msg_id: int) -> list[str]:
    """Every place that a message is in; always exactly one."""
    places = {
        "queue": "pgmq.q_jobs",
        "archive": "pgmq.a_jobs",
        "dead": "fairlease.dead_letters",
        "conflict": "fairlease.archive_conflicts",
    }
    return [
        place
        for place, table in places.items()
        for _ in session.execute(f"select from {table} where msg_id = %s", (msg_id,)).fetchall()
    ]


def states(session: psycopg.Connection) -> list[tuple[Any, ...]]:
    return session.execute(
        "select msg_id, closed_read_ct, closed_count, uncounted, begun_count "
        "from fairlease.message_state order by msg_id"
    ).fetchall()


def test_done_archives_and_leaves_no_state(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    [message] = send("a")
    [delivery] = hire().claim().deliveries
    assert hire().settle_only(done(delivery, took_ms=5)) == ["applied"]
    assert where(connection, message) == ["archive"]
    assert states(connection) == []
    row = connection.execute("select message, headers, read_ct from pgmq.a_jobs").fetchone()
    assert row == ({"n": 1}, {"x-org": "a"}, 1)


def test_done_deletes_where_the_queue_says_so(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('jobs', on_success => 'delete')")
    [message] = send("a")
    [delivery] = hire().claim().deliveries
    assert hire().settle_only(done(delivery)) == ["applied"]
    assert where(connection, message) == []


@pytest.mark.parametrize(("verb", "attempt"), [("retry", 2), ("snooze", 1), ("give_back", 1)])
def test_a_message_that_stays_is_over_and_comes_again(
    hire: Hire, send: Send, connection: psycopg.Connection, verb: str, attempt: int
) -> None:
    [message] = send("a")
    [delivery] = hire().claim().deliveries
    assert hire().settle_only(outcome(verb, delivery, after_ms=0)) == ["applied"]
    assert states(connection) == [(message, 1, 1, 2 - attempt, 0)]
    [again] = hire().claim().messages
    assert (again["msg_id"], again["read_ct"]) == (message, 2)
    assert (again["attempt"], again["closed_count"], again["crashes"]) == (attempt, 1, 0)


@pytest.mark.parametrize(
    ("verb", "waits"), [("retry", True), ("snooze", True), ("give_back", False)]
)
def test_after_ms_delays_all_but_a_give_back(
    hire: Hire, send: Send, clock: MovableClock, verb: str, waits: bool
) -> None:
    send("a")
    [delivery] = hire().claim().deliveries
    hire().settle_only(outcome(verb, delivery, after_ms=1500))
    assert (hire().claim(sleep_seconds=0).status == "no_demand") == waits
    clock.advance(1.499)
    assert (hire().claim(sleep_seconds=0).status == "no_demand") == waits
    clock.advance(0.001)
    assert hire().claim().status == "claimed"


@pytest.mark.parametrize("verb", VERBS)
def test_settling_again_is_already_or_gone_and_counts_nothing(
    hire: Hire, send: Send, connection: psycopg.Connection, verb: str
) -> None:
    send("a")
    [delivery] = hire().claim().deliveries
    said = outcome(verb, delivery, after_ms=60_000, reason="r", error="e")
    hire().settle_only(said)
    before = states(connection), where(connection, delivery[0])
    again = "gone" if verb in ("done", "dead") else "already"
    assert hire().settle_only(said) == [again]
    assert hire().settle_only(said, said) == [again, again]
    assert (states(connection), where(connection, delivery[0])) == before


@pytest.mark.parametrize("verb", VERBS)
def test_the_same_delivery_twice_in_one_call_is_applied_once(
    hire: Hire, send: Send, connection: psycopg.Connection, verb: str
) -> None:
    send("a")
    [delivery] = hire().claim().deliveries
    said = outcome(verb, delivery, after_ms=60_000)
    again = "gone" if verb in ("done", "dead") else "already"
    assert hire().settle_only(said, said) == ["applied", again]
    assert len(where(connection, delivery[0])) == 1
    assert sum(row[2] for row in states(connection)) == (again == "already")


@pytest.mark.parametrize("verb", VERBS)
def test_an_older_delivery_is_lost_and_changes_nothing(
    hire: Hire, send: Send, connection: psycopg.Connection, clock: MovableClock, verb: str
) -> None:
    send("a")
    [stale] = hire("h1").claim(sleep_seconds=30).deliveries
    clock.advance(61)
    [fresh] = hire("h2").claim().deliveries
    assert fresh == [stale[0], 2]
    before = connection.execute("table pgmq.q_jobs").fetchall()
    assert hire("h1").settle_only(outcome(verb, stale, after_ms=0)) == ["lost"]
    assert connection.execute("table pgmq.q_jobs").fetchall() == before
    assert hire("h2").settle_only(done(fresh)) == ["applied"]


def test_a_delivery_whose_slot_is_gone_still_settles(
    hire: Hire, send: Send, clock: MovableClock
) -> None:
    send("a")
    [delivery] = hire().claim(sleep_seconds=300).deliveries
    clock.advance(100)
    assert hire().settle_only(done(delivery)) == ["applied"]


def test_results_come_in_the_order_of_the_outcomes(hire: Hire, send: Send) -> None:
    send(*["a"] * 4)
    one, two, three, four = hire().claim(n=4).deliveries
    answer = hire().settle(
        [
            done(four),
            outcome("retry", two),
            {"id": 999, "ct": 1, "do": "done"},
            outcome("dead", one),
            outcome("give_back", three),
        ],
        n=0,
    )
    assert [item["id"] for item in answer.settled] == [four[0], two[0], 999, one[0], three[0]]
    assert answer.results == ["applied", "applied", "gone", "applied", "applied"]


REFUSED = [
    (7, "object"),
    ("text", "object"),
    (None, "object"),
    ([], "object"),
    ({"ct": 1, "do": "done"}, "id"),
    ({"id": "1", "ct": 1, "do": "done"}, "id"),
    ({"id": 1.5, "ct": 1, "do": "done"}, "id"),
    ({"id": 2**63, "ct": 1, "do": "done"}, "id"),
    ({"id": 1, "do": "done"}, "ct"),
    ({"id": 1, "ct": 0, "do": "done"}, "ct"),
    ({"id": 1, "ct": -1, "do": "done"}, "ct"),
    ({"id": 1, "ct": 2**31, "do": "done"}, "ct"),
    ({"id": 1, "ct": 1}, "do"),
    ({"id": 1, "ct": 1, "do": "DONE"}, "do"),
    ({"id": 1, "ct": 1, "do": {"a": 1}}, "do"),
    ({"id": 1, "ct": 1, "do": "retry", "after_ms": -1}, "after_ms"),
    ({"id": 1, "ct": 1, "do": "retry", "after_ms": "soon"}, "after_ms"),
    ({"id": 1, "ct": 1, "do": "retry", "after_ms": 10**15}, "after_ms"),
    ({"id": 1, "ct": 1, "do": "retry", "limit": 60}, "limit"),
]


def test_an_outcome_that_cannot_be_read_is_refused_alone(hire: Hire, send: Send) -> None:
    send("a", "a")
    _, good = hire().claim(n=2).deliveries
    for bad, names in REFUSED:
        answer = hire().settle([bad, {"id": 777, "ct": 1, "do": "done"}], n=0)
        assert answer.results == ["refused", "gone"], bad
        assert names in answer.settled[0]["note"], bad
    answer = hire().settle([*[bad for bad, _ in REFUSED], done(good)], n=0)
    assert answer.results == ["refused"] * len(REFUSED) + ["applied"]


@pytest.mark.parametrize("outcomes", [{}, "done", 5, None])
def test_outcomes_that_are_no_array_are_refused_as_a_call(hire: Hire, outcomes: Any) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match=r"^outcomes\b"):
        hire().settle(outcomes)


def test_too_many_outcomes_are_refused_as_a_call(hire: Hire) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match="at most 500, got 501"):
        hire().settle([{}] * 501)


def test_a_row_that_the_database_refuses_does_not_undo_its_neighbours(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send(*["a"] * 4)
    deliveries = hire().claim(n=4).deliveries
    connection.execute(
        "alter table pgmq.a_jobs add constraint odd check (msg_id <> 2); "
        "alter table fairlease.dead_letters add constraint odd check (msg_id <> 4)"
    )
    answer = hire().settle(
        [
            done(deliveries[0]),
            done(deliveries[1]),
            outcome("dead", deliveries[2]),
            outcome("dead", deliveries[3]),
        ],
        n=0,
    )
    assert answer.results == ["applied", "refused", "applied", "refused"]
    assert "odd" in answer.settled[1]["note"]
    assert [where(connection, number) for number in (1, 2, 3, 4)] == [
        ["archive"],
        ["queue"],
        ["dead"],
        ["queue"],
    ]


def test_a_missing_archive_keeps_what_is_done_elsewhere(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a", "a", "a")
    one, two, three = hire().claim(n=3).deliveries
    connection.execute("drop table pgmq.a_jobs")
    settled = [done(one), outcome("retry", two, after_ms=0), done(three)]
    answer = hire().settle(settled, pin_org="a")
    assert answer.results == ["applied", "applied", "applied"]
    assert answer.settled[0]["note"].endswith("or is missing: moved to archive_conflicts")
    assert answer.ids == [two[0]]
    kept = "select msg_id, read_ct, message, headers from fairlease.archive_conflicts order by 1"
    assert connection.execute(kept).fetchall() == [
        (1, 1, {"n": 1}, {"x-org": "a"}),
        (3, 1, {"n": 1}, {"x-org": "a"}),
    ]
    assert hire().settle_only(done(one)) == ["gone"]
    assert [state[0] for state in states(connection)] == [two[0]]


def test_a_dropped_queue_answers_gone(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a")
    [delivery] = hire().claim().deliveries
    connection.execute("select pgmq.drop_queue('jobs')")
    assert hire().settle([done(delivery)]).results == ["gone"]
    assert hire().settle_only(done(delivery)) == ["gone"]


def test_an_id_that_the_archive_holds_goes_to_the_conflicts(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a", "a")
    one, two = hire().claim(n=2).deliveries
    connection.execute("insert into pgmq.a_jobs (msg_id, vt) values (1, now())")
    answer = hire().settle([done(one), done(two)], n=0)
    assert answer.results == ["applied", "applied"]
    assert "archive_conflicts" in answer.settled[0]["note"]
    assert "note" not in answer.settled[1]
    row = connection.execute(
        "select queue, msg_id, read_ct, message, headers from fairlease.archive_conflicts"
    ).fetchone()
    assert row == ("jobs", 1, 1, {"n": 1}, {"x-org": "a"})
    assert connection.execute("select count(*) from pgmq.q_jobs").fetchone() == (0,)


def test_state_of_an_earlier_message_of_the_same_id_is_not_this_ones(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a")
    connection.execute(
        "insert into fairlease.message_state (queue, msg_id, enqueued_at, closed_read_ct, "
        "closed_count, uncounted, begun_count, last_error) "
        "values ('jobs', 1, '2001-01-01', 1, 5, 4, 3, 'old')"
    )
    [message] = hire().claim().messages
    assert (message["attempt"], message["crashes"], message["closed_count"]) == (1, 0, 0)
    [delivery] = [[message["msg_id"], message["read_ct"]]]
    assert hire().settle_only(outcome("retry", delivery, error="new")) == ["applied"]
    row = connection.execute(
        "select closed_read_ct, closed_count, uncounted, begun_count, last_error "
        "from fairlease.message_state"
    ).fetchone()
    assert row == (1, 1, 0, 0, "new")


def test_settle_and_claim_in_one_call_sees_what_it_gave_back(hire: Hire, send: Send) -> None:
    send("a")
    [delivery] = hire().claim().deliveries
    answer = hire().settle([outcome("give_back", delivery)], pin_org="a")
    assert (answer.results, answer.deliveries) == (["applied"], [[delivery[0], 2]])


def test_settling_only_looks_at_nothing_of_the_claim(hire: Hire, send: Send) -> None:
    send("a")
    answer = hire().settle(
        [], n=0, sleep_seconds=None, lease_ttl_seconds=None, max_per_org=None, global_cap=None
    )
    assert (answer.status, answer.messages, answer.settled) == (None, [], [])


def test_one_call_answers_one_value_whatever_it_settles(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send(*["a"] * 500)
    deliveries = hire().claim(n=500).deliveries
    answer = hire().settle([done(delivery) for delivery in deliveries], n=0)
    assert answer.results == ["applied"] * 500
    assert connection.execute("select count(*) from pgmq.a_jobs").fetchone() == (500,)
