"""Settles and heartbeats that meet each other, claims, or somebody else's statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from sql.worker import done, outcome

if TYPE_CHECKING:
    from race.conftest import Hire
    from sql.worker import MovableClock

    Fixture = Any


def visible_in(session: psycopg.Connection, msg_id: int) -> float:
    row = session.execute(
        "select extract(epoch from vt - fairlease.now_())::float8 from pgmq.q_jobs "
        "where msg_id = %s",
        (msg_id,),
    ).fetchone()
    assert row is not None
    return row[0]


def test_a_heartbeat_against_settle_and_claim_of_one_holder(
    hire: Hire, send: Fixture, call: Fixture
) -> None:
    send(*["a"] * 3)
    drain, renewal = hire("h1", open_transaction=True), hire("h1")
    one, two = drain.claim(n=2).deliveries
    drain.session.commit()
    answer = drain.settle([done(one)], pin_org="a")
    assert answer.ids == [3]
    waiting = call(renewal).start(renewal.heartbeat, [one, two]).seen_waiting()
    drain.session.commit()
    assert waiting.result() == {
        "slot_alive": True,
        "extended": [two[0]],
        "lost": [],
        "gone": [one[0]],
    }


def test_a_late_heartbeat_hides_nothing_that_was_given_back(
    hire: Hire, send: Fixture, call: Fixture, clock: MovableClock, connection: psycopg.Connection
) -> None:
    """No slot row stands between the two: only the message and what is known of it."""
    send("a")
    drain, renewal = hire("h1", open_transaction=True), hire("h2")
    [delivery] = drain.claim().deliveries
    drain.release()
    drain.session.commit()
    assert drain.settle_only(outcome("give_back", delivery)) == ["applied"]
    waiting = call(renewal).start(renewal.heartbeat, [delivery]).seen_waiting()
    drain.session.commit()
    assert waiting.result()["lost"] == [delivery[0]]
    assert visible_in(connection, delivery[0]) == 0


@pytest.mark.parametrize(
    ("verb", "result"), [("done", "gone"), ("dead", "gone"), ("retry", "already")]
)
def test_two_settles_of_one_delivery_apply_once(
    hire: Hire,
    send: Fixture,
    call: Fixture,
    connection: psycopg.Connection,
    verb: str,
    result: str,
) -> None:
    send("a")
    first, second = hire("h1", open_transaction=True), hire("h2")
    [delivery] = first.claim().deliveries
    first.session.commit()
    said = outcome(verb, delivery, after_ms=1000)
    assert first.settle_only(said) == ["applied"]
    waiting = call(second).start(second.settle_only, said).seen_waiting()
    first.session.commit()
    assert waiting.result() == [result]
    counts = connection.execute(
        "select (select count(*) from pgmq.q_jobs) + (select count(*) from pgmq.a_jobs) "
        "+ (select count(*) from fairlease.dead_letters), "
        "(select coalesce(sum(closed_count), 0) from fairlease.message_state)"
    ).fetchone()
    assert counts == (1, int(verb == "retry"))


@pytest.mark.parametrize("verb", ["retry", "snooze", "give_back"])
@pytest.mark.parametrize("late", ["done", "dead", "retry"])
def test_a_settle_that_waited_for_another_of_its_delivery_finds_it_over(
    hire: Hire, send: Fixture, call: Fixture, connection: psycopg.Connection, verb: str, late: str
) -> None:
    """What is known of the message is read after the wait, not with the lock."""
    send("a")
    first, second = hire("h1", open_transaction=True), hire("h2")
    [delivery] = first.claim().deliveries
    first.session.commit()
    assert first.settle_only(outcome(verb, delivery, after_ms=1000)) == ["applied"]
    waiting = call(second).start(second.settle_only, outcome(late, delivery)).seen_waiting()
    first.session.commit()
    assert waiting.result() == ["already"]
    assert connection.execute("select count(*) from pgmq.q_jobs").fetchone() == (1,)


@pytest.mark.parametrize("verb", ["done", "retry", "give_back", "dead"])
def test_a_stale_settle_that_waited_for_the_next_delivery_is_lost(
    hire: Hire,
    send: Fixture,
    call: Fixture,
    clock: MovableClock,
    connection: psycopg.Connection,
    verb: str,
) -> None:
    send("a")
    stale, fresh = hire("h1"), hire("h2", open_transaction=True)
    [old] = stale.claim(sleep_seconds=10).deliveries
    clock.advance(61)
    [new] = fresh.claim().deliveries
    waiting = call(stale).start(stale.settle_only, outcome(verb, old)).seen_waiting()
    fresh.session.commit()
    assert waiting.result() == ["lost"]
    assert visible_in(connection, new[0]) == 120
    assert fresh.settle_only(done(new)) == ["applied"]


def test_a_stale_heartbeat_that_waited_for_the_next_delivery_is_lost(
    hire: Hire, send: Fixture, call: Fixture, clock: MovableClock, connection: psycopg.Connection
) -> None:
    send("a")
    stale, fresh = hire("h1"), hire("h2", open_transaction=True)
    [old] = stale.claim(sleep_seconds=10).deliveries
    clock.advance(61)
    fresh.claim(sleep_seconds=30)
    waiting = call(stale).start(stale.heartbeat, [old]).seen_waiting()
    fresh.session.commit()
    assert waiting.result()["lost"] == [old[0]]
    assert visible_in(connection, old[0]) == 30


def test_a_claim_passes_by_what_is_being_settled(hire: Hire, send: Fixture) -> None:
    send("a", "a")
    drain, other = hire("h1", open_transaction=True), hire("h2")
    [delivery] = drain.claim().deliveries
    drain.session.commit()
    drain.settle_only(outcome("give_back", delivery))
    assert other.claim(n=5, max_per_org=2).ids == [2]
    drain.session.commit()


def test_a_repeated_release_after_a_new_claim_frees_nothing(
    hire: Hire, send: Fixture, call: Fixture, connection: psycopg.Connection
) -> None:
    send("a", "b")
    first, late, second = (
        hire("run/1", open_transaction=True),
        hire("run/1"),
        hire("run/2"),
    )
    first.plain()
    first.session.commit()
    assert first.release()
    waiting = call(late).start(late.release).seen_waiting()
    first.session.commit()
    assert second.plain().status == "claimed"
    assert waiting.result() is False
    assert late.release() is False
    assert second.renew()


def test_a_release_that_waited_for_a_claim_of_its_own_holder_frees_what_that_left(
    hire: Hire, send: Fixture, call: Fixture
) -> None:
    send("a", "b")
    drain, other = hire("h1", open_transaction=True), hire("h1")
    drain.plain()
    drain.session.commit()
    assert drain.plain().org == "b"
    waiting = call(other).start(other.release).seen_waiting()
    drain.session.commit()
    assert waiting.result() is True
    assert not other.renew()


def test_settles_of_overlapping_batches_and_limits_in_opposite_orders_do_not_deadlock(
    hire: Hire, send: Fixture, call: Fixture
) -> None:
    send("a", "b", "a", "b")
    first, second = hire("h1", open_transaction=True), hire("h2")
    a = first.plain(n=2, pin_org="a").messages
    first.session.commit()
    b = second.plain(n=2, pin_org="b").messages
    everything = [[m["msg_id"], 1] for m in (*a, *b)]
    limit = {"until_ms": 1000}
    said = [outcome("snooze", delivery, limit=limit) for delivery in everything]
    assert first.settle(said, pin_org="b", n=1).results == ["applied"] * 4
    waiting = call(second).start(second.settle, said[::-1], pin_org="a", n=1).seen_waiting()
    first.session.commit()
    assert waiting.result().results == ["already"] * 4


def test_two_senders_of_the_same_keys_in_opposite_orders_do_not_deadlock(
    hire: Hire, send: Fixture, call: Fixture, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('jobs', unique_keys => true)")
    third, first, second = hire("s3", open_transaction=True), hire("s1"), hire("s2")
    messages = [{"message": {}, "key": f"k{number}"} for number in range(20)]

    def post(session: psycopg.Connection, said: list[dict[str, Any]]) -> Any:
        row = session.execute("select pgmq_public.send_messages('jobs', %s)", (Jsonb(said),))
        return row.fetchone()[0]

    # Somebody holds a key in the middle, so that both are caught half way.
    post(third.session, messages[10:11])
    one = call(first).start(post, first.session, messages).seen_waiting()
    two = call(second).start(post, second.session, messages[::-1]).seen_waiting()
    third.session.rollback()
    sent, again = one.result(), two.result()
    assert sent["ids"] == again["ids"][::-1]
    assert len(sent["existing"]) + len(again["existing"]) == 20


@pytest.mark.usefixtures("makes_one_deadlock")
def test_a_deadlock_with_somebody_elses_statement_never_leaves_as_one(
    hire: Hire, send: Fixture, call: Fixture
) -> None:
    """PostgREST would retry a 40P01 for ever; a lock not available is the caller's to retry."""
    send("a", "a")
    drain, foreign = hire("h1"), hire("psql", open_transaction=True)
    deliveries = drain.claim(n=2).deliveries
    foreign.session.execute("select from pgmq.q_jobs where msg_id = 2 for update")
    waiting = (
        call(drain)
        .start(drain.settle_only, *[done(delivery) for delivery in deliveries])
        .seen_waiting()
    )
    foreign.session.execute("select from pgmq.q_jobs where msg_id = 1 for update")
    with pytest.raises(psycopg.errors.LockNotAvailable, match="call it again"):
        waiting.result()
    foreign.session.commit()
    assert drain.settle_only(*[done(delivery) for delivery in deliveries]) == ["applied"] * 2
