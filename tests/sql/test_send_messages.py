from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from sql.worker import done

if TYPE_CHECKING:
    from sql.conftest import Hire
    from sql.worker import MovableClock


def post(session: psycopg.Connection, messages: Any, sleep_seconds: int | None = 0) -> Any:
    row = session.execute(
        "select pgmq_public.send_messages('jobs', %s, %s)", (Jsonb(messages), sleep_seconds)
    ).fetchone()
    assert row is not None
    return row[0]


@pytest.fixture
def keyed(connection: psycopg.Connection) -> None:
    connection.execute("select fairlease.attach_queue('jobs', unique_keys => true)")


def test_ids_come_in_the_order_of_the_messages(connection: psycopg.Connection, queue: str) -> None:
    sent = post(connection, [{"message": {"n": number}} for number in range(50)])
    assert sent == {"ids": list(range(1, 51)), "existing": []}
    rows = connection.execute("select (message->>'n')::int from pgmq.q_jobs order by msg_id")
    assert [row[0] for row in rows] == list(range(50))


def test_nothing_to_send_is_no_error(connection: psycopg.Connection, queue: str) -> None:
    assert post(connection, []) == {"ids": [], "existing": []}


def test_ten_thousand_go_in_one_call(connection: psycopg.Connection, queue: str) -> None:
    assert len(post(connection, [{"message": {"n": 1}}] * 10_000)["ids"]) == 10_000
    with pytest.raises(psycopg.errors.RaiseException, match=r"^messages must be at most 10000"):
        post(connection, [{"message": {"n": 1}}] * 10_001)


def test_org_headers_and_any_json_arrive_as_sent(
    connection: psycopg.Connection, queue: str
) -> None:
    big = 9223372036854775807000000000001
    post(
        connection,
        [
            {"message": {"a": big}, "org": "Acme", "headers": {"trace": "t"}},
            {"message": [1, 2]},
            {"message": "text"},
            {"message": None},
            {"message": 0, "org": "", "headers": None},
        ],
    )
    rows = connection.execute(
        "select message, headers, fairlease.org_of(message, headers) from pgmq.q_jobs "
        "order by msg_id"
    ).fetchall()
    assert rows == [
        ({"a": big}, {"trace": "t", "x-org": "Acme"}, "acme"),
        ([1, 2], None, "(unresolved)"),
        ("text", None, "(unresolved)"),
        (None, None, "(unresolved)"),
        (0, None, "(unresolved)"),
    ]


def test_a_delay_hides_until_its_time(
    connection: psycopg.Connection, hire: Hire, clock: MovableClock
) -> None:
    post(connection, [{"message": {}}], 60)
    assert hire().claim().status == "no_demand"
    clock.advance(60)
    assert hire().claim().status == "claimed"


def test_a_live_key_answers_with_the_message_that_bears_it(
    connection: psycopg.Connection, hire: Hire, keyed: None
) -> None:
    first = post(connection, [{"message": {"n": 1}, "key": "k"}, {"message": {"n": 2}}])
    again = post(
        connection,
        [
            {"message": {"n": 3}, "key": "j"},
            {"message": {"n": 4}, "key": "k"},
            {"message": {"n": 5}, "key": "j"},
        ],
    )
    assert again["ids"][1] == first["ids"][0]
    assert again["ids"][0] == again["ids"][2]
    assert again["existing"] == [1, 2]
    rows = connection.execute("select (message->>'n')::int from pgmq.q_jobs order by 1").fetchall()
    assert rows == [(1,), (2,), (3,)]


def test_a_key_is_free_when_its_message_is_settled(
    connection: psycopg.Connection, hire: Hire, keyed: None
) -> None:
    for _ in range(2):
        assert post(connection, [{"message": {}, "key": "k"}])["existing"] == []
        hire().settle_only(done(hire().claim().deliveries[0]))


def test_a_key_in_the_message_counts_as_one(
    connection: psycopg.Connection, keyed: None, queue: str
) -> None:
    post(connection, [{"message": {"key": "k"}}])
    assert post(connection, [{"message": {}, "key": "k"}])["existing"] == [0]


def test_a_key_is_stored_in_the_message(connection: psycopg.Connection, keyed: None) -> None:
    post(connection, [{"message": {"n": 1}, "key": "Ключ"}])
    assert connection.execute("select message from pgmq.q_jobs").fetchone() == (
        {"n": 1, "key": "Ключ"},
    )


BAD = [
    ({}, "messages"),
    (None, "messages"),
    ([{}], r"messages\[0\]: message is missing"),
    ([{"message": {}}, 5], r"messages\[1\]: message is missing"),
    ([{"message": {}, "headers": [1]}], r"messages\[0\]: headers"),
    ([{"message": 5, "key": "k"}], r"messages\[0\]: key needs"),
    ([{"message": {}, "key": "k" * 513}], r"messages\[0\]: key has 513 bytes"),
    ([{"message": {}, "key": "é" * 257}], r"messages\[0\]: key has 514 bytes"),
]


def test_bad_messages_are_refused_whole_with_their_place(
    connection: psycopg.Connection, keyed: None
) -> None:
    for messages, said in BAD:
        with pytest.raises(psycopg.errors.RaiseException, match=f"^{said}"):
            post(connection, messages)
    assert connection.execute("table pgmq.q_jobs").fetchall() == []


def test_a_key_is_refused_where_keys_are_not_kept_unique(
    connection: psycopg.Connection, queue: str
) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match="unique_keys"):
        post(connection, [{"message": {}, "key": "k"}])


@pytest.mark.parametrize("sleep_seconds", [-1, None])
def test_a_delay_that_is_none_is_refused(
    connection: psycopg.Connection, queue: str, sleep_seconds: int | None
) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match=r"^sleep_seconds\b"):
        post(connection, [{"message": {}}], sleep_seconds)


def test_an_id_sequence_that_was_set_back_raises_and_sends_nothing(
    connection: psycopg.Connection, queue: str
) -> None:
    post(connection, [{"message": {}}])
    connection.execute("alter table pgmq.q_jobs alter column msg_id restart with 1")
    with pytest.raises(psycopg.errors.UniqueViolation):
        post(connection, [{"message": {}}])


RESOLVER = """
create function public.find_org(message jsonb) returns text language sql
as $$ select 'Team-' || (message ->> 'team')::int $$
"""


def orgs(session: psycopg.Connection) -> list[str]:
    rows = session.execute(
        "select fairlease.org_of(message, headers) from pgmq.q_jobs order by msg_id"
    ).fetchall()
    return [row[0] for row in rows]


def test_a_resolver_is_asked_once_when_the_message_is_sent(
    connection: psycopg.Connection, queue: str
) -> None:
    connection.execute(RESOLVER)
    connection.execute(
        "select fairlease.attach_queue('jobs', resolver => 'public.find_org(jsonb)')"
    )
    post(
        connection,
        [{"message": {"team": 7, "org": "said"}}, {"message": {"team": 7}, "org": "own"}],
    )
    connection.execute("select pgmq.send('jobs', '{\"team\": 8}')")
    connection.execute(
        "create or replace function public.find_org(message jsonb) returns text "
        "language sql as $$ select 'changed' $$"
    )
    assert orgs(connection) == ["team-7", "own", "team-8"]


def test_a_resolver_that_raises_or_knows_nothing_never_fails_the_sender(
    connection: psycopg.Connection, queue: str
) -> None:
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    connection.execute(RESOLVER)
    connection.execute(
        "select fairlease.attach_queue('jobs', resolver => 'public.find_org(jsonb)')"
    )
    post(connection, [{"message": {"team": "x"}}, {"message": {"org": "fallback"}}])
    assert orgs(connection) == ["(unresolved)", "fallback"]
    assert any("resolver of queue 'jobs' failed" in notice for notice in notices)


def test_the_queue_may_let_its_resolver_overrule_the_sender(
    connection: psycopg.Connection, queue: str
) -> None:
    connection.execute(RESOLVER)
    connection.execute(
        "select fairlease.attach_queue('jobs', resolver => 'public.find_org(jsonb)', "
        "resolver_overrides => true)"
    )
    post(connection, [{"message": {"team": 7}, "org": "own"}])
    assert orgs(connection) == ["team-7"]


def test_a_resolver_may_read_what_the_sender_may_not(
    connection: psycopg.Connection, queue: str
) -> None:
    connection.execute("create schema hidden; create table hidden.teams as select 'Deep' as org")
    connection.execute(
        "create function hidden.look(message jsonb, headers jsonb) returns text language sql "
        "as $$ select org || coalesce(headers ->> 'part', '') from hidden.teams $$"
    )
    connection.execute(
        "select fairlease.attach_queue('jobs', resolver => 'hidden.look(jsonb,jsonb)')"
    )
    connection.execute("grant usage on schema pgmq to authenticated")
    connection.execute("grant select, insert on pgmq.q_jobs to authenticated")
    connection.execute("set role authenticated")
    connection.execute("select pgmq.send('jobs', '{}'::jsonb, '{\"part\": \"1\"}'::jsonb)")
    connection.execute("reset role")
    assert orgs(connection) == ["deep1"]


def test_a_resolver_of_another_shape_is_refused(connection: psycopg.Connection, queue: str) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match=r"^resolver\b"):
        connection.execute("select fairlease.attach_queue('jobs', resolver => 'lower(text)')")


def test_a_resolver_is_taken_away(connection: psycopg.Connection, queue: str) -> None:
    connection.execute(RESOLVER)
    connection.execute(
        "select fairlease.attach_queue('jobs', resolver => 'public.find_org(jsonb)')"
    )
    connection.execute("update fairlease.queues set resolver = null")
    connection.execute("select fairlease.attach_queue('jobs')")
    post(connection, [{"message": {"team": 7, "org": "said"}}])
    assert orgs(connection) == ["said"]
