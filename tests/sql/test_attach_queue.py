from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb


def attach(session: psycopg.Connection, queue: str | None, **policy: Any) -> dict[str, Any]:
    named = "".join(f", {name} => %({name})s" for name in policy)
    row = session.execute(
        f"select fairlease.attach_queue(%(queue)s{named})", {"queue": queue, **policy}
    ).fetchone()
    assert row is not None
    return row[0]


def value(session: psycopg.Connection, statement: str, *arguments: Any) -> Any:
    row = session.execute(statement, arguments).fetchone()
    return row[0] if row else None


def relations(session: psycopg.Connection) -> list[tuple[str, str]]:
    return session.execute(
        "select relname::text, relkind::text from pg_class "
        "where relnamespace = 'pgmq'::regnamespace order by 1"
    ).fetchall()


WORKS = ["a", "Jobs", "image-worker-queue", "a_b", "_x", "0", "q" * 47, "create", "a-b-c"]
REFUSED = [
    None,
    "",
    " ",
    "a b",
    "x'; drop table pgmq.meta; --",
    "a$b",
    'a"b',
    "a'b",
    "a--b",
    "a;b",
    "a.b",
    "-a",
    "a-",
    "a\nb",
    "a\n",
    "é",
    "\uff41",
    "q" * 48,
    "q" * 60,
    "q" * 5000,
    "x_msg_id_seq",
    "x_vt_idx",
    "X_PKEY",
]


@pytest.mark.parametrize("name", WORKS)
def test_a_name_that_is_allowed_works_from_sending_to_settling(
    connection: psycopg.Connection, name: str
) -> None:
    attach(connection, name)
    connection.execute('select pgmq_public.send(%s, \'{"org": "a"}\')', (name,))
    row = connection.execute(
        "select msg_id, read_ct from pgmq_public.claim_org_slot_and_read(%s, 60, 1, 'h', 60, 1, 8)",
        (name,),
    ).fetchone()
    assert row == (1, 1)
    settled = value(
        connection,
        "select pgmq_public.settle_and_claim(%s, 'h', %s, 0, 0, 0, 0, 0)",
        name,
        Jsonb([{"id": 1, "ct": 1, "do": "done"}]),
    )
    assert settled["settled"] == [{"id": 1, "result": "applied"}]
    archive = sql.Identifier("pgmq", f"a_{name}".lower())
    assert connection.execute(sql.SQL("select count(*) from {}").format(archive)).fetchone() == (1,)


def test_other_names_are_refused_and_leave_nothing(connection: psycopg.Connection) -> None:
    before = relations(connection)
    for name in REFUSED:
        with pytest.raises(psycopg.errors.RaiseException, match=r"^queue_name\b"):
            attach(connection, name)
    assert relations(connection) == before
    assert value(connection, "select count(*) from fairlease.queues") == 0


@pytest.mark.parametrize("first", ["Jobs", "jobs"])
def test_two_names_never_share_a_table(connection: psycopg.Connection, first: str) -> None:
    attach(connection, first)
    with pytest.raises(psycopg.errors.RaiseException, match=f"share the table.*'{first}'"):
        attach(connection, first.swapcase())


def test_a_name_of_a_foreign_table_is_refused(connection: psycopg.Connection) -> None:
    connection.execute("create view pgmq.q_jobs as select 1 as one")
    with pytest.raises(psycopg.errors.RaiseException, match="exists and is no queue"):
        attach(connection, "jobs")


def test_attaching_again_keeps_what_was_decided(connection: psycopg.Connection) -> None:
    attach(connection, "jobs", on_success="delete", max_attempts=3, unique_keys=True)
    connection.execute("select pgmq_public.send('jobs', '{}')")
    before = relations(connection)
    attach(connection, "jobs")
    attach(connection, "jobs", retention="7 days")
    assert relations(connection) == before
    row = connection.execute(
        "select on_success, max_attempts, unique_keys, retention = interval '7 days' "
        "from fairlease.queues"
    ).fetchall()
    assert row == [("delete", 3, True, True)]
    assert value(connection, "select count(*) from pgmq.q_jobs") == 1


def test_a_queue_with_messages_is_attached_as_it_is(connection: psycopg.Connection) -> None:
    connection.execute("select pgmq.create('jobs')")
    columns = "select array_agg(attname::text order by attnum) from pg_attribute where attnum > 0 "
    columns += "and attrelid = 'pgmq.q_jobs'::regclass"
    before = value(connection, columns)
    connection.execute("select pgmq.send('jobs', '{\"org\": \"Old\"}')")
    attach(connection, "jobs")
    assert value(connection, columns) == before
    assert (
        value(
            connection,
            "select org from pgmq_public.claim_org_slot_and_read('jobs', 60, 1, 'h', 60, 1, 8)",
        )
        == "old"
    )


def test_a_partitioned_queue_is_refused(connection: psycopg.Connection) -> None:
    connection.execute(
        "create table pgmq.q_parts (msg_id bigint, vt timestamptz) partition by range (msg_id); "
        "insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) "
        "values ('parts', true, false)"
    )
    with pytest.raises(psycopg.errors.RaiseException, match="partitioned"):
        attach(connection, "parts")
    connection.execute("update pgmq.meta set is_partitioned = false")
    with pytest.raises(psycopg.errors.RaiseException, match="partitioned"):
        attach(connection, "parts")


def test_an_unlogged_queue_is_warned_about(connection: psycopg.Connection) -> None:
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    connection.execute("select pgmq.create_unlogged('jobs')")
    [warning] = attach(connection, "jobs")["warnings"]
    assert "unlogged" in warning
    assert notices == [warning]


def test_a_hot_queue_gets_what_vacuum_needs(connection: psycopg.Connection) -> None:
    attach(connection, "jobs")
    options = value(
        connection, "select reloptions from pg_class where oid = 'pgmq.q_jobs'::regclass"
    )
    assert "autovacuum_vacuum_scale_factor=0.01" in options
    assert "fillfactor=70" in options


def test_a_table_of_millions_is_left_to_a_concurrent_build(
    connection: psycopg.Connection,
) -> None:
    connection.execute("select pgmq.create('jobs')")
    # The threshold stands in one function; a million rows would only take time.
    connection.execute(
        "create or replace function fairlease.is_large(p_table regclass) returns boolean "
        "language sql as 'select true'"
    )
    with pytest.raises(psycopg.errors.RaiseException, match="create index concurrently") as refused:
        attach(connection, "jobs")
    statement = str(refused.value).split("transaction: ")[1].splitlines()[0]
    connection.execute(statement)
    attach(connection, "jobs")
    attach(connection, "jobs")
    indexes = value(
        connection,
        "select count(*) from pg_index i where indrelid = 'pgmq.q_jobs'::regclass "
        "and pg_get_indexdef(indexrelid) like '%%org_of%%'",
    )
    assert indexes == 1


def test_an_index_that_a_build_left_invalid_is_built_again(
    connection: psycopg.Connection,
) -> None:
    identity = attach(connection, "jobs")["id"]
    connection.execute(f"drop index pgmq.fairlease_q{identity}_org_idx")
    connection.execute(f"create index fairlease_q{identity}_org_idx on pgmq.q_jobs (read_ct)")
    attach(connection, "jobs")
    definition = value(
        connection, "select pg_get_indexdef(%s::regclass)", f"pgmq.fairlease_q{identity}_org_idx"
    )
    assert "org_of(message, headers)" in definition


def test_detaching_leaves_the_queue_as_pgmq_made_it(connection: psycopg.Connection) -> None:
    connection.execute("select pgmq.create('plain')")
    connection.execute("select pgmq.create('jobs')")
    before = relations(connection)
    attach(connection, "jobs", unique_keys=True)
    connection.execute("select pgmq.send('jobs', '{}')")
    assert value(connection, "select fairlease.detach_queue('jobs')") is True
    assert value(connection, "select fairlease.detach_queue('jobs')") is False
    assert relations(connection) == before
    assert value(connection, "select count(*) from pgmq.q_jobs") == 1
    left = "select count(*) from pg_proc where pronamespace = 'fairlease'::regnamespace "
    assert value(connection, left + "and proname ~ '^q[0-9]+_'") == 0


def test_a_queue_dropped_and_created_again_is_attached_again(
    connection: psycopg.Connection,
) -> None:
    attach(connection, "jobs")
    connection.execute("select pgmq.drop_queue('jobs')")
    attach(connection, "jobs")
    connection.execute("select pgmq_public.send('jobs', '{\"org\": \"a\"}')")
    assert (
        value(
            connection,
            "select status from pgmq_public.claim_org_slot_and_read('jobs', 60, 1, 'h', 60, 1, 8)",
        )
        == "claimed"
    )


@pytest.mark.parametrize(
    "policy",
    [{"on_success": "burn"}, {"max_attempts": 0}, {"retention": "-1 day"}],
)
def test_a_policy_that_means_nothing_is_refused(
    connection: psycopg.Connection, policy: dict[str, Any]
) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        attach(connection, "jobs", **policy)
