"""What a wait for somebody's lock leaves behind: the time of asking, the cap as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sql.worker import done

if TYPE_CHECKING:
    import psycopg

    from race.conftest import Hire
    from sql.worker import MovableClock

    Fixture = Any


def seconds_left(session: psycopg.Connection, what: str) -> list[float]:
    return [
        row[0]
        for row in session.execute(
            f"select extract(epoch from {what} - fairlease.now_())::float8 from "
            + ("pgmq.q_jobs where read_ct > 0" if what == "vt" else "fairlease.seats")
            + f" where {what} is not null" * (what != "vt")
        )
    ]


def test_a_pinned_claim_does_not_outwait_who_edits_a_limit(
    hire: Hire, send: Fixture, connection: psycopg.Connection
) -> None:
    send("a")
    connection.execute("insert into fairlease.org_limits (org, starts_per_minute) values ('a', 60)")
    operator, pinned = hire("op", open_transaction=True), hire("h1")
    operator.session.execute("update fairlease.org_limits set burst = 2 where org = 'a'")
    assert pinned.plain(pin_org="a").status == "no_capacity"
    assert pinned.plain().status == "no_capacity"
    operator.session.commit()
    assert pinned.plain(pin_org="a").status == "claimed"


@pytest.mark.parametrize("waited", [30, 300], ids=["lease alive", "lease lapsed"])
def test_a_claim_counts_from_the_end_of_the_wait_of_its_settle(
    hire: Hire,
    send: Fixture,
    call: Fixture,
    clock: MovableClock,
    connection: psycopg.Connection,
    waited: int,
) -> None:
    send("a", "a")
    drain, foreign = hire("h1"), hire("psql", open_transaction=True)
    [delivery] = drain.claim().deliveries
    foreign.session.execute("select from pgmq.q_jobs where msg_id = %s for update", delivery[:1])
    waiting = call(drain).start(drain.settle, [done(delivery)], pin_org="a").seen_waiting()
    clock.advance(waited)
    foreign.session.commit()
    answer = waiting.result()
    assert (answer.results, answer.status) == (["applied"], "claimed")
    assert seconds_left(connection, "vt") == [120]
    assert seconds_left(connection, "expires_at") == [60]
    why = connection.execute("select why from fairlease.lease_log").fetchall()
    assert why == ([("lapsed",)] if waited == 300 else [])


def test_a_heartbeat_counts_from_the_end_of_its_wait(
    hire: Hire, send: Fixture, call: Fixture, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a")
    drain, foreign = hire("h1"), hire("psql", open_transaction=True)
    [delivery] = drain.claim().deliveries
    foreign.session.execute("select from pgmq.q_jobs where msg_id = %s for update", delivery[:1])
    waiting = call(drain).start(drain.heartbeat, [delivery]).seen_waiting()
    clock.advance(300)
    foreign.session.commit()
    assert waiting.result()["extended"] == delivery[:1]
    assert seconds_left(connection, "vt") == [120]


@pytest.mark.parametrize("change", ["max_per_org = 1", "paused = true"])
def test_what_changed_during_a_wait_for_ordinals_binds(
    hire: Hire, send: Fixture, call: Fixture, connection: psycopg.Connection, change: str
) -> None:
    send(*["a"] * 4)
    connection.execute("alter function fairlease.await_ordinals(text) set lock_timeout = '15s'")
    connection.execute("insert into fairlease.org_limits (org, max_per_org) values ('a', 2)")
    first, second = hire("h1", open_transaction=True), hire("h2")
    assert first.plain().status == "claimed"
    waiting = call(second).start(second.plain).seen_waiting()
    connection.execute(f"update fairlease.org_limits set {change}")
    first.session.commit()
    assert waiting.result().status == "org_capacity"
    assert len(seconds_left(connection, "expires_at")) == 1
