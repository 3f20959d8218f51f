"""Claims that meet: who waits, who does not, and whose caps hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

    from race.conftest import Hire
    from sql.worker import MovableClock

    Fixture = Any


def live(session: psycopg.Connection) -> list[tuple[str, str, int]]:
    return session.execute(
        "select holder, org, ordinal from fairlease.seats where expires_at > fairlease.now_() "
        "order by holder"
    ).fetchall()


def test_two_holders_of_one_org_top_up_in_the_same_instant(hire: Hire, send: Fixture) -> None:
    send(*["a"] * 8)
    first, second = hire("h1", open_transaction=True), hire("h2")
    first.plain(max_per_org=2)
    first.session.commit()
    second.plain(max_per_org=2, pin_org="a")
    one = first.plain(n=2, max_per_org=2, pin_org="a")
    two = second.plain(n=2, max_per_org=2, pin_org="a")
    first.session.commit()
    assert (one.ids, two.ids) == ([3, 4], [5, 6])


def test_two_holders_of_an_org_with_a_rate_are_charged_one_after_the_other(
    hire: Hire, send: Fixture, call: Fixture, connection: psycopg.Connection, clock: MovableClock
) -> None:
    send(*["a"] * 8)
    connection.execute(
        "insert into fairlease.org_limits (org, max_per_org, starts_per_minute, burst) "
        "values ('a', 2, 1, 5)"
    )
    first, second = hire("h1", open_transaction=True), hire("h2")
    first.plain()
    first.session.commit()
    second.plain(pin_org="a")
    assert len(first.plain(n=2, pin_org="a").ids) == 2
    waiting = call(second).start(second.plain, n=2, pin_org="a").seen_waiting()
    first.session.commit()
    assert len(waiting.result().ids) == 1, "one token was left of five"


def test_the_loser_of_a_race_of_one_holders_own_claims_does_not_wait(
    hire: Hire, send: Fixture, connection: psycopg.Connection
) -> None:
    send("a", "b")
    first, twin = hire("h1", open_transaction=True), hire("h1")
    assert first.plain().status == "claimed"
    answer = twin.claim()
    assert (answer.status, answer.cause) == ("no_capacity", "locked")
    assert twin.plain().status == "no_capacity"
    first.session.commit()
    assert len(live(connection)) == 1


def test_a_claim_of_a_holder_with_a_slot_waits_for_its_other_call(
    hire: Hire, send: Fixture, call: Fixture
) -> None:
    send("a", "b")
    first, twin = hire("h1", open_transaction=True), hire("h1")
    first.plain()
    first.session.commit()
    first.renew()
    waiting = call(twin).start(twin.plain).seen_waiting()
    first.session.commit()
    assert waiting.result().org == "b"


def test_two_callers_with_different_caps(
    hire: Hire, send: Fixture, connection: psycopg.Connection
) -> None:
    send("a", "b", "c")
    wide, narrow = hire("wide", open_transaction=True), hire("narrow")
    assert wide.plain(global_cap=4).status == "claimed"
    answer = narrow.claim(global_cap=1)
    assert (answer.status, answer.cause) == ("no_capacity", "locked")
    wide.session.commit()
    assert narrow.claim(global_cap=1).cause == "fleet_full"
    assert len(live(connection)) == 1


def test_a_cap_lowered_from_eight_to_two_with_eight_live(
    hire: Hire, send: Fixture, connection: psycopg.Connection
) -> None:
    send(*"abcdefghijklmnop")
    holders = [hire(f"h{number}", open_transaction=True) for number in range(8)]
    for holder in holders:
        assert holder.plain(global_cap=8).status == "claimed"
        holder.session.commit()
    new = hire("new")

    def expect(live_others: int) -> None:
        expected = "claimed" if live_others < 2 else "no_capacity"
        assert new.plain(global_cap=2).status == expected, f"{live_others} others live"
        assert len(live(connection)) <= max(2, live_others)
        new.release()

    for number, holder in enumerate(holders):
        holder.release()
        expect(8 - number)
        holder.session.commit()
        expect(7 - number)


def test_a_lapsed_pinned_holder_against_a_taker(
    hire: Hire, send: Fixture, call: Fixture, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send(*["a"] * 4)
    lapsed, taker = hire("lapsed"), hire("taker", open_transaction=True)
    lapsed.plain(lease_ttl_seconds=10)
    clock.advance(10)
    assert taker.plain(pin_org="a", global_cap=1).status == "claimed"
    waiting = call(lapsed).start(lapsed.claim, pin_org="a", global_cap=1).seen_waiting()
    taker.session.commit()
    answer = waiting.result()
    assert (answer.status, answer.cause) == ("no_capacity", "fleet_full")
    assert live(connection) == [("taker", "a", 1)]


def test_a_taker_passes_by_a_lapsed_row_that_its_holder_has_locked(
    hire: Hire, send: Fixture, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send(*["a"] * 4)
    lapsed, taker = hire("lapsed", open_transaction=True), hire("taker")
    lapsed.plain(lease_ttl_seconds=10)
    lapsed.session.commit()
    clock.advance(10)
    assert lapsed.plain(pin_org="a").status == "claimed"
    assert taker.plain(pin_org="a", max_per_org=1).status == "no_capacity"
    lapsed.session.commit()
    assert taker.plain(pin_org="a", max_per_org=1).status == "org_capacity"
    assert live(connection) == [("lapsed", "a", 1)]


def test_ordinals_are_given_out_one_by_one(
    hire: Hire, send: Fixture, call: Fixture, connection: psycopg.Connection
) -> None:
    send(*["a"] * 4)
    connection.execute("alter function fairlease.await_ordinals(text) set lock_timeout = '15s'")
    first, second = hire("h1", open_transaction=True), hire("h2")
    assert first.plain(max_per_org=1).status == "claimed"
    waiting = call(second).start(second.plain, max_per_org=1).seen_waiting()
    first.session.commit()
    assert waiting.result().status == "org_capacity"
    assert live(connection) == [("h1", "a", 1)]


def test_the_last_org_there_is_is_waited_for_a_moment_and_only_by_a_plain_claim(
    hire: Hire, send: Fixture, connection: psycopg.Connection
) -> None:
    send(*["a"] * 4)
    first, second = hire("h1", open_transaction=True), hire("h2")
    assert first.plain(max_per_org=2).status == "claimed"
    assert second.plain(max_per_org=2).status == "no_capacity"
    assert second.plain(max_per_org=2, pin_org="a").status == "no_capacity"
    connection.execute("alter function fairlease.await_ordinals(text) set lock_timeout = '15s'")
    assert second.claim(max_per_org=2).cause == "locked", "one that settles never waits"
    assert second.claim(max_per_org=2, pin_org="a").cause == "locked"
    first.session.commit()
    assert second.claim(max_per_org=2).status == "claimed"


def test_an_org_whose_ordinals_are_busy_is_passed_by(hire: Hire, send: Fixture) -> None:
    send(*["a"] * 4, "b")
    first, second = hire("h1", open_transaction=True), hire("h2")
    assert first.plain(max_per_org=2).org == "a"
    assert second.plain(max_per_org=2).org == "b"
    first.session.commit()


def test_the_cursor_is_never_waited_for(
    hire: Hire, send: Fixture, connection: psycopg.Connection
) -> None:
    send("a", "b", "c")
    first, second = hire("h1", open_transaction=True), hire("h2")
    first.plain()
    assert second.plain().org == "b"
    first.session.commit()


def test_a_limit_that_is_being_edited_is_waited_for_when_pinned_and_passed_by_otherwise(
    hire: Hire, send: Fixture, call: Fixture, connection: psycopg.Connection
) -> None:
    send("a", "b")
    connection.execute("alter function fairlease.await_org(text) set lock_timeout = '15s'")
    connection.execute("insert into fairlease.org_limits (org, starts_per_minute) values ('a', 60)")
    operator, pinned, free = hire("op", open_transaction=True), hire("h1"), hire("h2")
    operator.session.execute("update fairlease.org_limits set burst = 2 where org = 'a'")
    assert free.plain().org == "b"
    waiting = call(pinned).start(pinned.plain, pin_org="a").seen_waiting()
    operator.session.commit()
    assert waiting.result().status == "claimed"


def test_a_settle_locks_the_pinned_orgs_row_before_any_message(
    hire: Hire, send: Fixture, call: Fixture, connection: psycopg.Connection
) -> None:
    [message] = send("a")
    connection.execute("insert into fairlease.org_limits (org, starts_per_minute) values ('a', 60)")
    operator, drain = hire("op", open_transaction=True), hire("h1")
    [delivery] = drain.plain().deliveries
    operator.session.execute("update fairlease.org_limits set burst = 2 where org = 'a'")
    said = {"id": delivery[0], "ct": delivery[1], "do": "retry"}
    waiting = call(drain).start(drain.settle, [said], pin_org="a").seen_waiting()
    free = connection.execute("select msg_id from pgmq.q_jobs for update skip locked").fetchall()
    assert free == [(message,)]
    operator.session.commit()
    assert waiting.result().results == ["applied"]
