"""Renewing a slot and the deliveries in flight; counting crashes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from sql.worker import done, outcome

if TYPE_CHECKING:
    from sql.conftest import Hire, Send
    from sql.worker import MovableClock


def visible_in(session: psycopg.Connection, msg_id: int) -> float:
    row = session.execute(
        "select extract(epoch from vt - fairlease.now_())::float8 from pgmq.q_jobs "
        "where msg_id = %s",
        (msg_id,),
    ).fetchone()
    assert row is not None
    return row[0]


def test_an_empty_heartbeat_only_renews(hire: Hire, send: Send, clock: MovableClock) -> None:
    nothing = {"extended": [], "lost": [], "gone": []}
    assert hire().heartbeat([]) == {"slot_alive": False, **nothing}
    send("a")
    hire().claim()
    clock.advance(50)
    assert hire().heartbeat([]) == {"slot_alive": True, **nothing}
    clock.advance(50)
    assert hire().renew()


def test_a_running_delivery_is_extended_from_now(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    [message] = send("a")
    deliveries = hire().claim(sleep_seconds=120).deliveries
    clock.advance(100)
    assert hire().heartbeat(deliveries, sleep_seconds=90)["extended"] == [message]
    assert visible_in(connection, message) == 90


def test_a_delivery_is_extended_without_a_slot_and_without_another_claim_it_comes_back(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    [message] = send("a")
    deliveries = hire().claim(sleep_seconds=30).deliveries
    clock.advance(200)
    answer = hire().heartbeat(deliveries)
    assert (answer["slot_alive"], answer["extended"]) == (False, [message])
    assert visible_in(connection, message) == 120


def test_lost_gone_and_over_are_told_and_not_touched(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send(*["a"] * 4)
    lost, gone, over, runs = hire("h1").claim(n=4, sleep_seconds=30).deliveries
    hire("h1").settle_only(done(gone), outcome("give_back", over))
    hire("h1").heartbeat([runs], sleep_seconds=3600)
    clock.advance(31)
    connection.execute("update pgmq.q_jobs set vt = 'infinity' where msg_id = %s", (over[0],))
    assert hire("h1").claim(pin_org="a", n=1).deliveries == [[lost[0], 2]]
    connection.execute("update pgmq.q_jobs set vt = fairlease.now_() where msg_id = %s", (over[0],))
    answer = hire("h1").heartbeat([lost, gone, over, runs])
    assert answer["extended"] == [runs[0]]
    assert sorted(answer["lost"]) == sorted([lost[0], over[0]])
    assert answer["gone"] == [gone[0]]
    assert visible_in(connection, over[0]) == 0, "a late heartbeat hides nothing"


def test_a_happy_delivery_leaves_no_state(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a")
    deliveries = hire().claim().deliveries
    for _ in range(3):
        hire().heartbeat(deliveries)
    assert connection.execute("table fairlease.message_state").fetchall() == []


def crash(hire: Hire, clock: MovableClock, *, begins: bool = True) -> dict[str, Any]:
    """A delivery that never ends; the handler began if its heartbeat said so."""
    [message] = hire().claim(sleep_seconds=10).messages
    if begins:
        for _ in range(2):
            hire().heartbeat([[message["msg_id"], message["read_ct"]]], sleep_seconds=10)
    clock.advance(61)
    return message


def test_crashes_are_deliveries_that_began_after_an_unended_one_and_never_ended(
    hire: Hire, send: Send, clock: MovableClock
) -> None:
    send("a")
    seen = [crash(hire, clock)["crashes"] for _ in range(5)]
    assert seen == [0, 0, 1, 2, 3]


def test_a_claim_whose_answer_was_lost_is_no_crash(
    hire: Hire, send: Send, clock: MovableClock
) -> None:
    send("a")
    seen = [crash(hire, clock, begins=False) for _ in range(4)]
    assert [message["crashes"] for message in seen] == [0, 0, 0, 0]
    assert [message["attempt"] for message in seen] == [1, 2, 3, 4]


def test_a_delivery_that_ends_takes_its_beginning_back(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a")
    crash(hire, clock)
    crash(hire, clock)
    [message] = hire().claim().messages
    assert message["crashes"] == 1
    delivery = [message["msg_id"], message["read_ct"]]
    hire().heartbeat([delivery])
    row = connection.execute("select begun_read_ct, begun_count from fairlease.message_state")
    assert row.fetchone() == (3, 2)
    hire().settle_only(outcome("retry", delivery))
    row = connection.execute(
        "select begun_read_ct, begun_count, closed_read_ct, closed_count "
        "from fairlease.message_state"
    )
    assert row.fetchone() == (None, 1, 3, 1)
    assert hire().claim().messages[0]["crashes"] == 1


def test_snoozes_and_give_backs_never_make_poison(
    hire: Hire, send: Send, clock: MovableClock
) -> None:
    send("a")
    for verb in ["snooze", "give_back"] * 5:
        [message] = hire().claim().messages
        delivery = [message["msg_id"], message["read_ct"]]
        hire().heartbeat([delivery])
        hire().settle_only(outcome(verb, delivery))
    [message] = hire().claim().messages
    assert (message["attempt"], message["crashes"]) == (1, 0)
    assert message["read_ct"] - message["closed_count"] == 1


@pytest.mark.parametrize(
    "deliveries",
    [
        {},
        None,
        "x",
        [1],
        [[1]],
        [["1", 1]],
        [[1, 0]],
        [[1, 2**31]],
        [[1, 1.5]],
        [[2**63, 1]],
        [None],
    ],
)
def test_deliveries_that_are_no_pairs_are_refused(hire: Hire, deliveries: Any) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match=r"^deliveries\b"):
        hire().heartbeat(deliveries)


@pytest.mark.parametrize(
    ("argument", "value"),
    [("lease_ttl_seconds", 0), ("sleep_seconds", -1), ("sleep_seconds", None)],
)
def test_a_heartbeat_refuses_bad_arguments(hire: Hire, argument: str, value: Any) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match=rf"^{argument}\b"):
        hire().heartbeat([], **{argument: value})


def test_the_same_delivery_named_twice_is_told_once(hire: Hire, send: Send) -> None:
    [message] = send("a")
    [delivery] = hire().claim().deliveries
    assert hire().heartbeat([delivery, delivery])["extended"] == [message]
