"""S1 and S2: a claim that takes a new slot leaves no more live ones than its own caps."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg

    from sql.conftest import Hire, Send
    from sql.worker import MovableClock


def live(session: psycopg.Connection) -> list[tuple[str, str, str, int, int]]:
    return session.execute(
        "select holder, queue, org, ordinal, seat from fairlease.seats "
        "where expires_at > fairlease.now_() order by seat"
    ).fetchall()


def seat_of(session: psycopg.Connection, holder: str) -> int | None:
    row = session.execute("select seat from fairlease.seats where holder = %s", (holder,))
    found = row.fetchone()
    return found[0] if found else None


def test_the_fleet_never_has_more_slots_than_its_cap(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send(*"abcdefgh")
    answers = [hire(f"h{i}").claim(global_cap=3).status for i in range(6)]
    assert answers == ["claimed"] * 3 + ["no_capacity"] * 3
    assert len(live(connection)) == 3


def test_an_org_never_has_more_slots_than_its_cap(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send(*["a"] * 9)
    answers = [hire(f"h{i}").claim(max_per_org=2).status for i in range(4)]
    assert answers == ["claimed"] * 2 + ["org_capacity"] * 2
    assert sorted(row[3] for row in live(connection)) == [1, 2]


def test_the_caps_count_over_all_queues(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('later')")
    send("a", "b")
    send("a", "c", queue="later")
    assert hire("h1").claim(pin_org="a").status == "claimed"
    blocked = hire("h2", "later").claim(pin_org="a")
    assert (blocked.status, blocked.cause) == ("org_capacity", "org_limit")
    assert hire("h2", "later").claim(global_cap=2).org == "c"
    assert hire("h3").claim(global_cap=2).cause == "fleet_full"


def test_a_lowered_cap_counts_the_slots_above_the_free_seat(hire: Hire, send: Send) -> None:
    send(*"abcdefghij")
    for number in range(8):
        hire(f"h{number}").claim(global_cap=8)
    hire("h0").release()
    hire("h1").release()
    answer = hire("new").claim(global_cap=2)
    assert (answer.status, answer.cause) == ("no_capacity", "fleet_full")
    for number in range(2, 7):
        hire(f"h{number}").release()
    assert hire("new").claim(global_cap=2).status == "claimed"


def test_two_callers_with_different_caps_each_keep_their_own(hire: Hire, send: Send) -> None:
    send(*"abcdef")
    hire("wide1").claim(global_cap=4)
    hire("wide2").claim(global_cap=4)
    assert hire("narrow").claim(global_cap=2).cause == "fleet_full"
    assert hire("wide3").claim(global_cap=4).status == "claimed"


def test_a_pinned_holder_above_a_lowered_cap_drains(hire: Hire, send: Send) -> None:
    send("a", "b", "b")
    hire("h1").claim()
    hire("h2").claim()
    answer = hire("h2").claim(global_cap=1, pin_org="b")
    assert (answer.status, answer.cause) == ("no_capacity", "fleet_full")
    assert hire("h2").renew(), "it drains, it is not evicted"


def test_an_unpinned_holder_above_a_lowered_cap_moves_down(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a", "b", "c")
    hire("h1").claim()
    hire("h2").claim()
    hire("h1").release()
    assert seat_of(connection, "h2") == 2
    assert hire("h2").claim(global_cap=1).status == "claimed"
    assert seat_of(connection, "h2") == 1
    assert len(live(connection)) == 1


def test_an_unpinned_holder_that_cannot_move_gives_its_slot_up(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a", "b", "c")
    hire("h1").claim()
    hire("h2").claim()
    answer = hire("h2").claim(global_cap=1)
    assert (answer.status, answer.cause) == ("no_capacity", "fleet_full")
    assert seat_of(connection, "h2") is None
    why = connection.execute("select why from fairlease.lease_log where holder = 'h2'").fetchall()
    assert why == [("over_cap",)]


def test_an_override_replaces_the_argument_up_and_down(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send(*["slow"] * 4, *["quick"] * 4)
    connection.execute(
        "insert into fairlease.org_limits (org, max_per_org) values ('Slow', 3), ('quick', 1)"
    )
    slow = [hire(f"s{i}").claim(max_per_org=1, pin_org="slow").status for i in range(4)]
    quick = [hire(f"q{i}").claim(max_per_org=2, pin_org="quick").status for i in range(2)]
    assert slow == ["claimed"] * 3 + ["org_capacity"]
    assert quick == ["claimed", "org_capacity"]


def test_an_override_of_zero_takes_no_new_slot(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a", "a")
    connection.execute("insert into fairlease.org_limits (org, max_per_org) values ('a', 0)")
    answer = hire().claim()
    assert (answer.status, answer.cause) == ("org_capacity", "org_limit")


def test_a_pinned_holder_above_a_lowered_org_cap_drains(hire: Hire, send: Send) -> None:
    send(*["a"] * 6)
    hire("h1").claim(max_per_org=2)
    hire("h2").claim(max_per_org=2)
    answer = hire("h2").claim(max_per_org=1, pin_org="a")
    assert (answer.status, answer.cause) == ("org_capacity", "org_limit")
    assert hire("h1").claim(max_per_org=1, pin_org="a").status == "claimed"
    assert hire("h2").renew()


def test_an_unpinned_holder_above_a_lowered_org_cap_may_take_a_lower_ordinal(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send(*["a"] * 6)
    hire("h1").claim(max_per_org=2)
    hire("h2").claim(max_per_org=2)
    assert hire("h2").claim(max_per_org=1).status == "org_capacity"
    hire("h1").release()
    assert hire("h2").claim(max_per_org=1).status == "claimed"
    assert [row[3] for row in live(connection)] == [1]


def test_an_ordinal_below_slots_above_the_cap_is_not_taken(hire: Hire, send: Send) -> None:
    send(*["a"] * 9)
    for number in range(4):
        hire(f"h{number}").claim(max_per_org=4)
    hire("h0").release()
    assert hire("new").claim(max_per_org=2).cause == "org_limit"
    hire("h2").release()
    hire("h3").release()
    assert hire("new").claim(max_per_org=2).status == "claimed"


def test_a_cap_beyond_every_seat_is_all_the_seats(
    hire: Hire, send: Send, connection: psycopg.Connection, clock: MovableClock
) -> None:
    send("a", "b")
    connection.execute(
        "update fairlease.seats set holder = 'x' || seat, queue = 'jobs', org = 'x' || seat, "
        "ordinal = 1, expires_at = fairlease.now_() + interval '1 h', taken_at = fairlease.now_() "
        "where seat < 1024"
    )
    assert hire("h1").claim(global_cap=2**31 - 1).status == "claimed"
    assert hire("h2").claim(global_cap=2**31 - 1).status == "no_capacity"


def test_a_fleet_that_has_taken_every_seat_there_is_is_full(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a")
    connection.execute(
        "update fairlease.seats set holder = 'h' || seat, queue = 'jobs', org = 'o' || seat, "
        "ordinal = 1, expires_at = now() + interval '1 hour', taken_at = now()"
    )
    assert hire("new").claim(global_cap=5000).cause == "fleet_full"
