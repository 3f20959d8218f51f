"""S3, S5 and S6: one slot for a holder, never revived, none left by an answer without messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

if TYPE_CHECKING:
    from sql.conftest import Hire, Send
    from sql.worker import MovableClock


def slots(session: psycopg.Connection) -> list[tuple[str, str, str, int]]:
    return session.execute(
        "select holder, queue, org, ordinal from fairlease.seats where holder is not null "
        "order by holder"
    ).fetchall()


def test_a_claim_again_repoints_the_one_slot(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a", "b")
    connection.execute("select fairlease.attach_queue('later')")
    send("c", queue="later")
    assert [hire().claim().org for _ in range(2)] == ["a", "b"]
    assert slots(connection) == [("h1", "jobs", "b", 1)]
    assert hire("h1", "later").claim().org == "c"
    assert slots(connection) == [("h1", "later", "c", 1)]
    assert not hire("h1", "jobs").renew()
    assert hire("h1", "later").renew()


def test_a_pinned_claim_may_take_a_slot_for_that_org(hire: Hire, send: Send) -> None:
    send("a", "b")
    answer = hire().claim(n=5, pin_org="b")
    assert (answer.status, answer.org, answer.ids) == ("claimed", "b", [2])


def test_a_pinned_claim_serves_that_org_or_nothing(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a", "a", "b")
    hire().claim(pin_org="a")
    assert hire().claim(pin_org="c").status == "no_demand"
    assert slots(connection) == [("h1", "jobs", "a", 1)]
    assert hire().claim(pin_org="b").org == "b"
    assert slots(connection) == [("h1", "jobs", "b", 1)]


def test_a_top_up_keeps_ordinal_and_renews(
    hire: Hire, send: Send, connection: psycopg.Connection, clock: MovableClock
) -> None:
    send("a", "a")
    hire().claim(lease_ttl_seconds=60)
    clock.advance(40)
    hire().claim(lease_ttl_seconds=60, pin_org="a")
    clock.advance(40)
    assert hire().renew()
    assert slots(connection) == [("h1", "jobs", "a", 1)]


@pytest.mark.parametrize("pin", [None, "a"])
def test_a_lapsed_slot_is_never_revived(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection, pin: str | None
) -> None:
    send("a", "a", "a")
    hire("h1").claim()
    clock.advance(60)
    assert not hire("h1").renew()
    assert hire("h1").heartbeat([])["slot_alive"] is False
    assert hire("h2").claim(pin_org="a").status == "claimed", "its place is free"
    assert hire("h1").claim(pin_org=pin).status == "org_capacity"
    assert slots(connection) == [("h2", "jobs", "a", 1)]


def test_a_slot_lives_to_the_last_moment_before_its_expiry(
    hire: Hire, send: Send, clock: MovableClock
) -> None:
    send("a")
    hire().claim(lease_ttl_seconds=60)
    clock.advance(59.999999)
    assert hire().renew(1)
    clock.advance(1)
    assert not hire().renew()


def test_a_lapsed_holder_claims_as_one_without_a_slot(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a", "a", "b")
    hire("h1").claim()
    clock.advance(61)
    assert hire("h2").claim(global_cap=1).status == "claimed"
    assert hire("h1").claim(global_cap=1).cause == "fleet_full"
    assert [row[0] for row in slots(connection)] == ["h2"]


def test_a_lapsed_ordinal_is_cleared_and_taken(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send(*["a"] * 4)
    hire("h1").claim(max_per_org=2, lease_ttl_seconds=10)
    hire("h2").claim(max_per_org=2, lease_ttl_seconds=60)
    clock.advance(20)
    assert hire("h3").claim(max_per_org=2).status == "claimed"
    assert slots(connection) == [("h2", "jobs", "a", 2), ("h3", "jobs", "a", 1)]


def test_a_lapsed_ordinal_on_another_seat_is_cleared(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("x", "a", "a")
    hire("h1").claim(pin_org="x", lease_ttl_seconds=100)
    hire("h2").claim(pin_org="a", lease_ttl_seconds=10)
    clock.advance(20)
    hire("h1").release()
    assert hire("h3").claim(pin_org="a").status == "claimed"
    assert slots(connection) == [("h3", "jobs", "a", 1)]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"pin_org": "nothing"}, "no_demand"),
        ({"pin_org": "paused"}, "org_capacity"),
        ({"max_per_org": 0}, "no_capacity"),
        ({"global_cap": 0}, "no_capacity"),
    ],
)
def test_an_answer_without_messages_leaves_no_new_slot(
    hire: Hire, send: Send, connection: psycopg.Connection, change: dict, status: str
) -> None:
    send("paused")
    connection.execute("insert into fairlease.org_limits (org, paused) values ('paused', true)")
    assert hire().claim(**change).status == status
    assert hire().plain(**change).status == status
    assert slots(connection) == []


def test_locked_rows_leave_no_new_slot(
    hire: Hire, send: Send, connection: psycopg.Connection, database: str
) -> None:
    send("a")
    with psycopg.connect(database) as reader:
        reader.execute("select from pgmq.q_jobs for update")
        hire().plain()
        hire().plain(pin_org="a")
        assert slots(connection) == []


def test_release_frees_the_place_at_once(hire: Hire, send: Send) -> None:
    send("a", "a")
    hire("h1").claim()
    assert hire("h1").release()
    assert hire("h2").claim().status == "claimed"


def test_release_and_renew_touch_only_rows_of_that_holder_in_that_queue(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('later')")
    send("a")
    hire("h1").claim()
    assert not hire("h2").release()
    assert not hire("h1", "later").release()
    assert not hire("h1", "later").renew()
    assert len(slots(connection)) == 1


def test_a_second_release_does_nothing(hire: Hire, send: Send) -> None:
    send("a")
    hire().claim()
    assert [hire().release() for _ in range(2)] == [True, False]


def test_renewing_sets_the_expiry_from_now(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a")
    hire().claim(lease_ttl_seconds=60)
    clock.advance(30)
    assert hire().renew(60)
    row = connection.execute(
        "select expires_at - fairlease.now_() = interval '60 s' from fairlease.seats "
        "where holder = 'h1'"
    ).fetchone()
    assert row == (True,)


@pytest.mark.parametrize("call", ["renew_org_slot", "release_org_slot"])
def test_renew_and_release_refuse_bad_arguments(hire: Hire, call: str) -> None:
    arguments = {"queue_name": "jobs", "holder": ""}
    if call == "renew_org_slot":
        arguments["lease_ttl_seconds"] = 60
    with pytest.raises(psycopg.errors.RaiseException, match=r"^holder\b"):
        hire().call(call, **arguments)
    with pytest.raises(psycopg.errors.RaiseException, match=r"^queue_name\b"):
        hire().call(call, **{**arguments, "holder": "h", "queue_name": "no"})


def test_renew_refuses_a_lease_that_ends_at_once(hire: Hire) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match=r"^lease_ttl_seconds\b"):
        hire().renew(0)


def test_each_lease_leaves_one_row_that_says_how_it_ended(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a", "a", "b", "c")
    hire("h1").claim(pin_org="a")
    hire("h1").claim(pin_org="a")
    clock.advance(5)
    hire("h1").claim(pin_org="b")
    clock.advance(5)
    hire("h1").release()
    hire("h2").claim(pin_org="c", lease_ttl_seconds=10)
    clock.advance(100)
    hire("h2").claim()
    rows = connection.execute(
        "select holder, org, why, claims, extract(epoch from ended_at - taken_at)::int "
        "from fairlease.lease_log order by id"
    ).fetchall()
    assert rows == [
        ("h1", "a", "repointed", 2, 5),
        ("h1", "b", "released", 1, 5),
        ("h2", "c", "lapsed", 1, 10),
    ]
