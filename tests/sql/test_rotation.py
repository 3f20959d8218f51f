"""Whose turn it is: breadth before depth, then round robin after the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg

    from sql.conftest import Hire, Send
    from sql.worker import MovableClock


def cursor(session: psycopg.Connection) -> str:
    row = session.execute("select org from fairlease.cursors where queue = 'jobs'").fetchone()
    assert row is not None
    return row[0]


def pause(session: psycopg.Connection, *orgs: str) -> None:
    for org in orgs:
        session.execute("insert into fairlease.org_limits (org, paused) values (%s, true)", (org,))


def test_a_lone_holder_goes_round(hire: Hire, send: Send) -> None:
    send(*["c"] * 3, *["a"] * 3, *["b"] * 3)
    assert [hire().claim().org for _ in range(7)] == ["a", "b", "c", "a", "b", "c", "a"]


def test_the_order_is_that_of_bytes(hire: Hire, send: Send) -> None:
    orgs = ["z", "é", "a-b", "a_b", "ab", "10", "9", "~", "Ω"]
    send(*orgs)
    expected = sorted(orgs, key=str.encode)
    assert [hire().claim().org for _ in orgs] == expected


def test_no_org_starves_behind_the_head_of_the_alphabet(hire: Hire, send: Send) -> None:
    send(*["a"] * 50, "z")
    assert hire().claim().org == "a"
    assert hire().claim().org == "z"


def test_breadth_comes_before_depth(hire: Hire, send: Send) -> None:
    send(*["a"] * 5, *["b"] * 5, *["c"] * 5)
    orgs = [hire(f"h{i}").claim(max_per_org=4).org for i in range(6)]
    assert orgs[:3] == ["a", "b", "c"]
    assert sorted(orgs[3:]) == ["a", "b", "c"]


def test_among_orgs_that_others_serve_the_fewest_slots_come_first(hire: Hire, send: Send) -> None:
    send(*["a"] * 5, *["b"] * 5)
    for number in range(3):
        hire(f"a{number}").claim(max_per_org=4, pin_org="a")
    hire("b0").claim(max_per_org=4, pin_org="b")
    assert hire("h").claim(max_per_org=4).org == "b"


def test_its_own_slot_does_not_count_against_an_org(hire: Hire, send: Send) -> None:
    send(*["a"] * 5, *["b"] * 5)
    hire("h2").claim(max_per_org=2, pin_org="b")
    hire("h1").claim(max_per_org=2, pin_org="a")
    assert hire("h1").claim(max_per_org=2).org == "a"


def test_slots_held_in_another_queue_count(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('later')")
    send("a", "b")
    send("a", queue="later")
    hire("h1", "later").claim(max_per_org=2)
    assert hire("h2").claim(max_per_org=2).org == "b"


def test_each_queue_has_a_cursor_of_its_own(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('later')")
    send("a", "b")
    send("a", "b", queue="later")
    assert [hire("h1").claim().org, hire("h2", "later").claim(max_per_org=2).org] == ["a", "b"]
    assert hire("h1").claim(max_per_org=2).org == "b"


def test_a_pinned_claim_leaves_the_cursor(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a", "b", "c")
    hire().claim(pin_org="b")
    assert cursor(connection) == ""


def test_within_an_org_the_earliest_visible_comes_first(
    hire: Hire, send: Send, clock: MovableClock
) -> None:
    [late] = send("a", sleep_seconds=10)
    [first, second] = send("a", "a", sleep_seconds=5)
    clock.advance(60)
    assert hire().claim(n=5).ids == [first, second, late]


def test_orgs_that_only_wait_are_passed_over(hire: Hire, send: Send) -> None:
    send("a", "b", sleep_seconds=60)
    send("c")
    assert hire().claim().org == "c"


def test_the_oldest_visible_message_is_found_among_thousands_that_wait(
    hire: Hire, send: Send
) -> None:
    send(*[f"org{number:04}" for number in range(3000)], sleep_seconds=3600)
    send("zz")
    assert hire().claim().org == "zz"
    assert hire().claim().status == "no_demand"


def test_a_claim_looks_at_64_orgs_and_says_when_that_was_not_all(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    orgs = [f"o{number:03}" for number in range(65)]
    send(*orgs)
    pause(connection, *orgs)
    answer = hire().claim()
    assert (answer.status, answer.cause, answer.retry_after_ms) == ("org_capacity", "probing", 0)
    assert cursor(connection) == orgs[63]
    connection.execute("delete from pgmq.q_jobs where msg_id = 65")
    answer = hire().claim()
    assert (answer.status, answer.cause) == ("org_capacity", "paused")


def test_the_one_org_that_may_run_is_found_within_blocked_by_64_claims(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    blocked = [f"o{number:03}" for number in range(200)]
    send(*blocked, "zz")
    pause(connection, *blocked)
    answers = [hire().claim() for _ in range(4)]
    assert [answer.cause for answer in answers[:3]] == ["probing"] * 3
    assert answers[3].org == "zz"


def test_the_first_org_that_nobody_serves_ends_the_walk(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send(*[f"o{number:03}" for number in range(30)])
    hire("h0").claim(pin_org="o000")
    assert hire("h1").claim(max_per_org=2).org == "o001"
    assert cursor(connection) == "o001"


def test_every_org_is_served_within_one_round(hire: Hire, send: Send) -> None:
    orgs = [f"o{number:03}" for number in range(100)]
    send(*orgs, *orgs)
    served = [hire().claim().org for _ in range(100)]
    assert sorted(filter(None, served)) == orgs
