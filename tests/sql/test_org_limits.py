"""starts_per_minute: exact, over the fleet, with no drift."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

if TYPE_CHECKING:
    from sql.conftest import Hire, Send
    from sql.worker import MovableClock


def limit(session: psycopg.Connection, org: str, **values: Any) -> None:
    columns = ", ".join(["org", *values])
    places = ", ".join(["%s"] * (len(values) + 1))
    session.execute(
        f"insert into fairlease.org_limits ({columns}) values ({places})", (org, *values.values())
    )


def test_a_burst_and_then_the_rate(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send(*["a"] * 20)
    limit(connection, "a", starts_per_minute=60, burst=5)
    assert len(hire().claim(n=20, pin_org="a").ids) == 5
    answer = hire().claim(n=20, pin_org="a")
    assert (answer.status, answer.cause, answer.retry_after_ms) == ("org_capacity", "tokens", 1000)
    clock.advance(0.999)
    assert hire().claim(n=20, pin_org="a").retry_after_ms == 1
    clock.advance(0.001)
    assert len(hire().claim(n=20, pin_org="a").ids) == 1
    clock.advance(3)
    assert len(hire().claim(n=20, pin_org="a").ids) == 3


@pytest.mark.parametrize(("rate", "burst"), [("7", 4), ("0.7", 2), ("61", 17)])
def test_an_hour_of_virtual_time_gives_the_exact_count(
    hire: Hire,
    send: Send,
    clock: MovableClock,
    connection: psycopg.Connection,
    rate: str,
    burst: int,
) -> None:
    limit(connection, "a", starts_per_minute=rate, burst=burst)
    # Demand without end: the same messages, visible again at once.
    send(*["a"] * 20)
    started = 0
    for _ in range(240):
        started += len(hire().claim(n=20, sleep_seconds=0, lease_ttl_seconds=99, pin_org="a").ids)
        clock.advance(15)
    started += len(hire().claim(n=20, sleep_seconds=0, pin_org="a").ids)
    assert started == burst + int(60 * Fraction(rate))


def test_no_window_gives_more_than_burst_and_rate(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    limit(connection, "a", starts_per_minute=7, burst=3)
    send(*["a"] * 20)
    chance = random.Random(5)
    starts: list[float] = []
    now = 0.0
    for _ in range(100):
        got = hire().claim(n=chance.randint(1, 5), sleep_seconds=0, lease_ttl_seconds=999)
        starts += [now] * len(got.ids)
        step = chance.choice([0.1, 1, 5, 9, 40])
        clock.advance(step)
        now += step
    for first in range(len(starts)):
        for last in range(first, len(starts)):
            window = starts[last] - starts[first]
            assert last - first + 1 <= 3 + 7 * window / 60 + 1e-6


def test_an_org_without_tokens_holds_no_slot_and_blocks_nobody(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send(*["a"] * 10, *["b"] * 3)
    limit(connection, "a", starts_per_minute=1)
    assert hire("h1").claim(pin_org="a").status == "claimed"
    hire("h1").release()
    assert [hire("h2").claim().org for _ in range(3)] == ["b", "b", "b"]
    rows = connection.execute("select org from fairlease.seats where holder is not null").fetchall()
    assert rows == [("b",)]


def test_only_messages_that_were_returned_are_charged(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    limit(connection, "a", starts_per_minute=60, burst=10)
    send("a", "a")
    assert len(hire().claim(n=10, pin_org="a").ids) == 2
    hire().claim(n=10, pin_org="a")
    send(*["a"] * 20)
    assert len(hire().claim(n=20, pin_org="a").ids) == 8


def test_the_rate_is_of_the_org_over_holders_and_queues(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('later')")
    limit(connection, "a", starts_per_minute=60, burst=3, max_per_org=5)
    send(*["a"] * 5)
    send(*["a"] * 5, queue="later")
    assert len(hire("h1").claim(n=2, pin_org="a").ids) == 2
    assert len(hire("h2", "later").claim(n=2, pin_org="a").ids) == 1
    assert hire("h3").claim(n=2, pin_org="a").cause == "tokens"


def test_a_quiet_time_saves_no_more_than_the_burst(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    limit(connection, "a", starts_per_minute=60, burst=2)
    send(*["a"] * 9)
    hire().claim(n=9, pin_org="a")
    clock.advance(3600)
    assert len(hire().claim(n=9, pin_org="a").ids) == 2


def test_a_new_rate_holds_from_the_next_claim(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    limit(connection, "a", starts_per_minute=1, burst=1)
    send(*["a"] * 9)
    hire().claim(n=9, pin_org="a")
    connection.execute("update fairlease.org_limits set starts_per_minute = 60")
    assert hire().claim(n=9, pin_org="a").retry_after_ms == 1000
    clock.advance(1)
    assert len(hire().claim(n=9, pin_org="a").ids) == 1


def test_the_burst_is_one_unless_said_otherwise(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    limit(connection, "a", starts_per_minute=60)
    send(*["a"] * 9)
    assert len(hire().claim(n=9).ids) == 1


def test_a_limit_is_found_however_the_org_was_written(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    limit(connection, "ACME" + "x" * 300, paused=True)
    send("acme" + "X" * 300)
    assert hire().claim().cause == "paused"
    with pytest.raises(psycopg.errors.UniqueViolation):
        limit(connection, "Acme" + "x" * 300)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("max_per_org", -1),
        ("starts_per_minute", 0),
        ("starts_per_minute", -1),
        ("burst", 0),
        ("starts_per_minute", "nan"),
        ("starts_per_minute", "infinity"),
    ],
)
def test_a_limit_that_means_nothing_is_refused(
    connection: psycopg.Connection, column: str, value: Any
) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        limit(connection, "a", **{column: value})


def test_a_debt_of_any_length_is_a_time_that_an_answer_can_say(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    limit(connection, "a", starts_per_minute="1e-20")
    send("a", "a", "b")
    assert [hire().claim().org for _ in range(2)] == ["a", "b"]
    answer = hire().claim()
    assert (answer.cause, answer.retry_after_ms) == ("tokens", 315_576_000_000)
