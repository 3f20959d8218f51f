"""An org that met a rate limit is left alone, fleet-wide; one delivery decides when it may run."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from psycopg.rows import dict_row

from sql.worker import done, outcome

if TYPE_CHECKING:
    import psycopg

    from sql.conftest import Hire, Send
    from sql.worker import MovableClock

DAY = 86400


def circuit(session: psycopg.Connection, org: str = "a") -> dict[str, Any]:
    with session.cursor(row_factory=dict_row) as cursor:
        cursor.execute(
            "select *, extract(epoch from open_until - fairlease.now_())::float8 as opens_in "
            "from fairlease.circuits where org = %s",
            (org,),
        )
        row = cursor.fetchone()
    assert row is not None
    return row


def limited(delivery: list[int], until_ms: float | None = None, verb: str = "snooze") -> Any:
    limit = {"reason": "secondary"} if until_ms is None else {"until_ms": until_ms}
    return outcome(verb, delivery, after_ms=0, took_ms=0, limit=limit)


def trip(hire: Hire, clock: MovableClock, until_ms: float | None = None) -> None:
    """Wait the circuit out, let its probe through, and have that meet the limit again."""
    clock.advance(0.001)
    answer = hire("h1").claim(pin_org="a")
    assert answer.status == "claimed", answer
    hire("h1").settle_only(limited(answer.deliveries[0], until_ms))


def test_a_limit_opens_the_circuit_at_once_for_everybody(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('later')")
    send("a", "a", "b")
    send("a", queue="later")
    [delivery] = hire("h1").claim(pin_org="a").deliveries
    answer = hire("h1").settle([limited(delivery, 30_000)], pin_org="a")
    assert answer.results == ["applied"]
    assert (answer.status, answer.cause, answer.retry_after_ms) == (
        "org_capacity",
        "circuit",
        30000,
    )
    assert hire("h2", "later").claim(max_per_org=9).cause == "circuit"
    assert hire("h2").claim(max_per_org=9).org == "b"
    assert connection.execute("select count(*) from pgmq.q_jobs").fetchone() == (3,)


def test_without_a_time_it_opens_for_a_minute(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a")
    hire().settle_only(limited(hire().claim().deliveries[0]))
    assert circuit(connection)["opens_in"] == 60
    assert circuit(connection)["reason"] == "secondary"


def test_many_answers_to_one_incident_are_one_trip_and_extend_at_most_to_their_own_time(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send(*["a"] * 16)
    deliveries = hire().claim(n=16).deliveries
    clock.advance(1)
    for number, delivery in enumerate(deliveries):
        hire().settle_only(limited(delivery, 1000 * number))
    row = circuit(connection)
    assert (row["trips"], row["opens_in"]) == (1, 15)


def test_a_late_answer_without_a_time_extends_nothing(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a", "a")
    first, second = hire().claim(n=2).deliveries
    clock.advance(1)
    hire().settle_only(limited(first, 10_000))
    clock.advance(5)
    hire().settle_only(limited(second))
    assert circuit(connection)["opens_in"] == 5


def test_half_open_lets_one_message_through(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send(*["a"] * 9)
    hire("h1").settle_only(limited(hire("h1").claim().deliveries[0], 1000))
    clock.advance(1)
    probe = hire("h1").claim(n=5, max_per_org=3, sleep_seconds=100)
    assert len(probe.ids) == 1
    row = circuit(connection)
    assert [row["probe_queue"], row["probe_id"], row["probe_ct"]] == ["jobs", *probe.deliveries[0]]
    assert row["probe_until"] == clock.now() + timedelta(seconds=100)
    blocked = hire("h2").claim(n=5, max_per_org=3)
    assert (blocked.cause, blocked.retry_after_ms) == ("circuit", 100_000)
    assert hire("h1").claim(n=5, max_per_org=3, pin_org="a").cause == "circuit"


@pytest.mark.parametrize("verb", ["done", "retry", "dead"])
def test_the_probes_end_closes_the_circuit(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection, verb: str
) -> None:
    send(*["a"] * 9)
    hire().settle_only(limited(hire().claim().deliveries[0], 1000))
    clock.advance(1)
    [probe] = hire().claim().deliveries
    hire().settle_only(outcome(verb, probe))
    row = circuit(connection)
    assert (row["open_until"], row["probe_id"], row["closed_at"]) == (None, None, clock.now())
    assert len(hire().claim(n=5, pin_org="a").ids) == 5


@pytest.mark.parametrize("verb", ["snooze", "give_back"])
def test_a_probe_that_is_put_off_frees_the_place(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection, verb: str
) -> None:
    send(*["a"] * 9)
    hire().settle_only(limited(hire().claim().deliveries[0], 1000))
    clock.advance(1)
    [probe] = hire().claim().deliveries
    hire().settle_only(outcome(verb, probe, after_ms=5000))
    assert circuit(connection)["open_until"] is not None
    assert len(hire().claim(n=5, pin_org="a").ids) == 1


def test_a_probe_that_died_frees_the_place_when_its_time_is_over(
    hire: Hire, send: Send, clock: MovableClock
) -> None:
    send(*["a"] * 9)
    hire().settle_only(limited(hire().claim().deliveries[0], 1000))
    clock.advance(1)
    [probe] = hire("h1").claim(sleep_seconds=30, lease_ttl_seconds=500).deliveries
    clock.advance(20)
    hire("h1").heartbeat([probe], sleep_seconds=30)
    clock.advance(29)
    assert hire("h2").claim(max_per_org=2).cause == "circuit"
    clock.advance(1)
    assert hire("h2").claim(max_per_org=2).status == "claimed"


def test_only_the_probe_decides(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send(*["a"] * 9)
    first, second, third = hire("h1").claim(n=3, max_per_org=3, sleep_seconds=900).deliveries
    hire("h1").settle_only(limited(first, 1000))
    clock.advance(1)
    [probe] = hire("h2").claim(max_per_org=3).deliveries
    hire("h1").settle_only(done(second))
    assert circuit(connection)["probe_id"] == probe[0]
    hire("h1").settle_only(outcome("give_back", third))
    assert circuit(connection)["probe_id"] == probe[0]
    hire("h2").settle_only(done(probe))
    assert circuit(connection)["open_until"] is None


def test_trips_double_up_to_a_day(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send(*["a"] * 3)
    waits = []
    for _ in range(14):
        trip(hire, clock)
        waits.append(circuit(connection)["opens_in"])
        clock.advance(waits[-1])
    assert waits[:4] == [60, 120, 240, 480]
    assert waits[10:] == [60 * 2**10, DAY, DAY, DAY]


def test_a_quiet_day_forgets_the_trips(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send(*["a"] * 3)
    trip(hire, clock)
    clock.advance(60)
    trip(hire, clock)
    assert circuit(connection)["trips"] == 2
    clock.advance(120)
    hire().settle_only(done(hire().claim(pin_org="a").deliveries[0]))
    clock.advance(DAY - 1)
    trip(hire, clock)
    assert circuit(connection)["trips"] == 3
    clock.advance(240 + DAY + 1)
    trip(hire, clock)
    assert (circuit(connection)["trips"], circuit(connection)["opens_in"]) == (1, 60)


def test_the_longest_time_is_a_day(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a")
    hire().settle_only(limited(hire().claim().deliveries[0], 10**12))
    assert circuit(connection)["opens_in"] == DAY


def test_a_limit_of_a_lost_delivery_says_nothing(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a")
    [stale] = hire("h1").claim(sleep_seconds=1).deliveries
    clock.advance(100)
    hire("h2").claim()
    assert hire("h1").settle_only(limited(stale)) == ["lost"]
    assert hire("h3").claim(max_per_org=2).status == "no_demand"
    assert circuit(connection)["open_until"] is None


def test_an_operator_opens_and_closes(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a")
    connection.execute("select fairlease.open_circuit('A', interval '1 hour', 'maintenance')")
    assert hire().claim().retry_after_ms == 3_600_000
    assert connection.execute("select fairlease.close_circuit('A')").fetchone() == (True,)
    assert connection.execute("select fairlease.close_circuit('a')").fetchone() == (False,)
    assert hire().claim().status == "claimed"


def test_a_paused_org_is_paused_whatever_its_circuit(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a")
    connection.execute("select fairlease.open_circuit('a', interval '1 hour')")
    connection.execute("insert into fairlease.org_limits (org, paused) values ('a', true)")
    answer = hire().claim()
    assert (answer.cause, answer.retry_after_ms) == ("paused", None)


def test_a_half_open_org_with_a_rate_is_charged_for_its_probe(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send(*["a"] * 5)
    connection.execute(
        "insert into fairlease.org_limits (org, starts_per_minute, burst) values ('a', 60, 2)"
    )
    hire().settle_only(limited(hire().claim().deliveries[0], 100))
    clock.advance(0.1)
    assert len(hire().claim(n=2).ids) == 1
    connection.execute("select fairlease.close_circuit('a')")
    assert hire().claim(n=2).cause == "tokens"
