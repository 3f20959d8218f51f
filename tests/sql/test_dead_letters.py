from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from sql.worker import done, outcome

if TYPE_CHECKING:
    import psycopg

    from sql.conftest import Hire, Send
    from sql.worker import MovableClock


def letters(session: psycopg.Connection) -> list[dict[str, Any]]:
    with session.cursor(row_factory=dict_row) as cursor:
        return cursor.execute("select * from fairlease.dead_letters order by id").fetchall()


def replay(session: psycopg.Connection, *ids: int) -> list[dict[str, Any]]:
    row = session.execute("select fairlease.replay_dead_letters(%s)", (list(ids),)).fetchone()
    assert row is not None
    return row[0]


def test_a_dead_letter_says_what_happened(
    hire: Hire, send: Send, clock: MovableClock, connection: psycopg.Connection
) -> None:
    [message] = send("Acme")
    first = clock.now()
    [delivery] = hire().claim().deliveries
    hire().settle_only(outcome("retry", delivery, after_ms=0, error="e1", took_ms=0))
    clock.advance(10)
    second = clock.now()
    [delivery] = hire().claim().deliveries
    hire().settle_only(outcome("dead", delivery, reason="no such repository", error="trace"))
    [letter] = letters(connection)
    assert letter["queue"] == "jobs"
    assert (letter["org"], letter["msg_id"]) == ("acme", message)
    assert (letter["message"], letter["headers"]) == ({"n": 1}, {"x-org": "Acme"})
    assert (letter["reason"], letter["error"]) == ("no such repository", "trace")
    assert (letter["attempts"], letter["read_ct"], letter["holder"]) == (2, 2, "h1")
    assert (letter["first_delivered_at"], letter["last_delivered_at"]) == (first, second)
    assert letter["died_at"] == second
    assert connection.execute("table pgmq.q_jobs").fetchall() == []
    assert connection.execute("table fairlease.message_state").fetchall() == []


def test_the_texts_of_a_dead_letter_are_bounded(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a")
    [delivery] = hire().claim().deliveries
    hire().settle_only(outcome("dead", delivery, reason="r" * 5000, error="e" * 500_000))
    [letter] = letters(connection)
    assert (len(letter["reason"]), len(letter["error"])) == (1000, 16000)


def test_a_retry_beyond_the_queues_attempts_is_a_dead_letter(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('jobs', max_attempts => 2)")
    send("a")
    for verb in ("snooze", "give_back", "retry"):
        [delivery] = hire().claim().deliveries
        assert hire().settle_only(outcome(verb, delivery)) == ["applied"]
    [delivery] = hire().claim().deliveries
    answer = hire().settle([outcome("retry", delivery, error="boom")], n=0)
    assert answer.results == ["applied"]
    assert "dead letters" in answer.settled[0]["note"]
    [letter] = letters(connection)
    assert (letter["reason"], letter["error"], letter["attempts"]) == ("max_attempts", "boom", 2)


def test_replay_is_a_new_message_of_the_same_org_that_says_where_it_came_from(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("Acme")
    [delivery] = hire().claim().deliveries
    hire().settle_only(outcome("dead", delivery, reason="r"))
    [letter] = letters(connection)
    [result] = replay(connection, letter["id"])
    assert (result["result"], result["msg_id"]) == ("replayed", 2)
    assert letters(connection) == []
    answer = hire().claim()
    assert (answer.org, answer.ids) == ("acme", [2])
    [again] = answer.messages
    assert again["headers"]["x-replay-of"] == {"dead_letter": letter["id"], "msg_id": 1}
    assert (again["attempt"], again["message"]) == (1, {"n": 1})


def test_replaying_twice_sends_once(hire: Hire, send: Send, connection: psycopg.Connection) -> None:
    send("a")
    [delivery] = hire().claim().deliveries
    hire().settle_only(outcome("dead", delivery))
    [letter] = letters(connection)
    results = replay(connection, letter["id"], letter["id"], 999)
    assert [item["result"] for item in results] == ["replayed", "gone", "gone"]
    assert connection.execute("select count(*) from pgmq.q_jobs").fetchone() == (1,)


def test_replay_onto_a_live_key_is_refused_by_name(
    hire: Hire, queue: str, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('jobs', unique_keys => true)")
    keyed = Jsonb([{"message": {"n": 1}, "key": "k1", "org": "a"}])
    connection.execute("select pgmq_public.send_messages('jobs', %s)", (keyed,))
    [delivery] = hire().claim().deliveries
    hire().settle_only(outcome("dead", delivery))
    connection.execute("select pgmq_public.send_messages('jobs', %s)", (keyed,))
    [letter] = letters(connection)
    [result] = replay(connection, letter["id"])
    assert result["result"] == "refused"
    assert "k1" in result["note"]
    assert len(letters(connection)) == 1
    [delivery] = hire().claim().deliveries
    hire().settle_only(done(delivery))
    assert replay(connection, letter["id"])[0]["result"] == "replayed"
