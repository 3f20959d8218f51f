"""Which status and cause a claim answers, and which wins where several fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

if TYPE_CHECKING:
    from sql.conftest import Hire, Send
    from sql.worker import MovableClock


def test_nothing_visible_is_no_demand(hire: Hire, send: Send) -> None:
    assert hire().claim().status == "no_demand"
    send("a", sleep_seconds=60)
    assert hire().claim().status == "no_demand"
    assert hire().plain().status == "no_demand"


def test_pinned_only_the_pinned_org_counts(hire: Hire, send: Send) -> None:
    send("a")
    assert hire().claim(pin_org="b").status == "no_demand"


def test_nothing_visible_wins_over_a_full_fleet(hire: Hire, send: Send) -> None:
    send("a")
    assert hire("h1").claim(global_cap=1).status == "claimed"
    assert hire("h2").claim(global_cap=1).status == "no_demand"
    assert hire("h2").claim(global_cap=1, pin_org="a").status == "no_demand"


@pytest.mark.parametrize("cap", ["max_per_org", "global_cap"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_cap_of_zero_stops_before_anything_is_read(
    hire: Hire, send: Send, cap: str, value: int
) -> None:
    send("a")
    answer = hire().claim(**{cap: value})
    assert (answer.status, answer.cause) == ("no_capacity", "stopped")
    assert hire().plain(**{cap: value}).status == "no_capacity"
    assert hire().plain(pin_org="nothing_there", **{cap: value}).status == "no_capacity"


def test_a_stop_leaves_the_slot_that_a_holder_has(hire: Hire, send: Send) -> None:
    send("a")
    hire().claim()
    hire().claim(global_cap=0)
    assert hire().renew()


def test_a_fleet_with_every_seat_live_is_full(hire: Hire, send: Send) -> None:
    send("a", "b", "b")
    hire("h1").claim(global_cap=1)
    answer = hire("h2").claim(global_cap=1)
    assert (answer.status, answer.cause) == ("no_capacity", "fleet_full")
    answer = hire("h2").claim(global_cap=1, pin_org="b")
    assert (answer.status, answer.cause) == ("no_capacity", "fleet_full")


def test_an_org_at_its_limit_is_org_capacity_not_no_capacity(hire: Hire, send: Send) -> None:
    send("a", "a")
    hire("h1").claim()
    for answer in (hire("h2").claim(), hire("h2").claim(pin_org="a")):
        assert (answer.status, answer.cause) == ("org_capacity", "org_limit")
    assert hire("h2").plain().status == "org_capacity"


def test_a_full_fleet_wins_over_an_org_at_its_limit(hire: Hire, send: Send) -> None:
    send("a", "a")
    hire("h1").claim(global_cap=1)
    assert hire("h2").claim(global_cap=1).cause == "fleet_full"


def test_a_holder_with_a_seat_hears_of_the_org_in_a_full_fleet(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a", "b")
    hire("h1").claim(global_cap=1)
    connection.execute("insert into fairlease.org_limits (org, paused) values ('b', true)")
    answer = hire("h1").claim(global_cap=1)
    assert (answer.status, answer.cause) == ("org_capacity", "paused")


def test_a_paused_org_leaves_others_alone(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a", "b")
    connection.execute("insert into fairlease.org_limits (org, paused) values ('A', true)")
    assert hire("h1").claim().org == "b"
    answer = hire("h2").claim(pin_org="a")
    assert (answer.status, answer.cause, answer.retry_after_ms) == ("org_capacity", "paused", None)
    connection.execute("update fairlease.org_limits set paused = false")
    assert hire("h2").claim(pin_org="a").status == "claimed"


def test_a_paused_org_with_nothing_visible_is_no_demand(
    hire: Hire, queue: str, connection: psycopg.Connection
) -> None:
    connection.execute("insert into fairlease.org_limits (org, paused) values ('a', true)")
    assert hire().claim(pin_org="a").status == "no_demand"


def test_rows_held_by_another_reader_are_locked(hire: Hire, send: Send, database: str) -> None:
    send("a")
    with psycopg.connect(database) as reader:
        reader.execute("select from pgmq.q_jobs for update")
        for answer in (hire().claim(), hire().claim(pin_org="a")):
            assert (answer.status, answer.cause) == ("no_capacity", "locked")
        assert hire().plain().status == "no_capacity"
    assert hire().claim().status == "claimed"


def test_work_of_another_org_is_found_behind_rows_that_are_held(
    hire: Hire, send: Send, database: str
) -> None:
    send("a", "b")
    with psycopg.connect(database) as reader:
        reader.execute("select from pgmq.q_jobs where msg_id = 1 for update")
        assert hire().claim().org == "b"


def test_the_report_names_the_org_that_is_free_first(
    hire: Hire, send: Send, connection: psycopg.Connection, clock: MovableClock
) -> None:
    send("a", "b", "b", "c", "c")
    connection.execute(
        "insert into fairlease.org_limits (org, paused, starts_per_minute) "
        "values ('a', true, null), ('b', false, 1), ('c', false, 2)"
    )
    hire("h1").claim(max_per_org=9, pin_org="b")
    hire("h2").claim(max_per_org=9, pin_org="c")
    answer = hire("h3").claim(max_per_org=9)
    assert (answer.status, answer.cause, answer.retry_after_ms) == ("org_capacity", "tokens", 30000)


def test_messages_come_as_pgmq_would_give_them(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a", "a")
    answer = hire().plain(n=5, sleep_seconds=90)
    assert [message["read_ct"] for message in answer.messages] == [1, 1]
    rows = connection.execute(
        "select vt - last_read_at = interval '90 s', last_read_at = fairlease.now_(), read_ct "
        "from pgmq.q_jobs"
    ).fetchall()
    assert rows == [(True, True, 1)] * 2
