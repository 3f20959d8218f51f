"""Who may call what, read from the catalogue: every function, none by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

if TYPE_CHECKING:
    from sql.conftest import Hire, Send

OURS = {
    "claim_org_slot_and_read",
    "renew_org_slot",
    "release_org_slot",
    "settle_and_claim",
    "heartbeat_org_slot",
    "send_messages",
    "once",
    "queue_stats",
    "maintain_queues",
}
# Last, or types and tables that a caller made for the session would come first.
CLOSED = 'search_path="", pg_temp'
WRAPPERS = {"send", "send_batch", "read", "pop", "archive", "delete"}
API_ROLES = ("anon", "authenticated", "service_role")


def functions(session: psycopg.Connection, schema: str) -> list[dict[str, Any]]:
    with session.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        return cursor.execute(
            """
            select p.oid::regprocedure::text as name, p.proname, p.prosecdef,
              coalesce(p.proconfig, '{}') as settings, pg_get_userbyid(p.proowner) as owner,
              array(select r from unnest(%s::text[]) r
                where has_function_privilege(r, p.oid, 'execute')) as callers
            from pg_proc p where p.pronamespace = %s::regnamespace order by 1
            """,
            (list(API_ROLES), schema),
        ).fetchall()


def test_every_public_function_is_ours_alone_to_define_and_the_services_to_call(
    connection: psycopg.Connection, queue: str
) -> None:
    found = functions(connection, "pgmq_public")
    assert {function["proname"] for function in found} == OURS | WRAPPERS
    assert len(found) == len(OURS | WRAPPERS), "a second overload answers PGRST203 to everybody"
    for function in found:
        assert function["prosecdef"], function
        assert CLOSED in function["settings"], function
        assert "jit=off" in function["settings"], function
        assert function["owner"] == "postgres", function
        assert function["callers"] == ["service_role"], function


def test_every_private_function_has_a_closed_search_path_and_no_caller_but_its_owner(
    connection: psycopg.Connection, queue: str
) -> None:
    found = functions(connection, "fairlease")
    assert len(found) > 60
    assert [f["name"] for f in found if CLOSED not in f["settings"]] == []
    # Whoever sends maintains the index; the schema stays closed to them all the same.
    callable_by_api = {f["proname"] for f in found if f["callers"]}
    assert callable_by_api == {"org_of"}


def test_the_plans_of_a_queues_own_functions_are_pinned(
    connection: psycopg.Connection, queue: str
) -> None:
    own = [f for f in functions(connection, "fairlease") if f["proname"].startswith("q1_")]
    assert len(own) >= 10
    for function in own:
        assert {"plan_cache_mode=force_generic_plan", "enable_seqscan=off", "jit=off"} <= set(
            function["settings"]
        ), function


def test_nothing_in_the_private_schema_is_granted_to_api_roles(
    connection: psycopg.Connection, queue: str
) -> None:
    granted = connection.execute(
        """
        select c.relname, r from pg_class c, unnest(%s::text[]) r
        where c.relnamespace = 'fairlease'::regnamespace and c.relkind in ('r', 'v', 'S')
          and case when c.relkind = 'S' then has_sequence_privilege(r, c.oid, 'usage')
            else has_table_privilege(r, c.oid, 'select, insert, update, delete, truncate') end
        """,
        (list(API_ROLES),),
    ).fetchall()
    assert granted == []
    usage = connection.execute(
        "select r from unnest(%s::text[]) r where has_schema_privilege(r, 'fairlease', 'usage')",
        (list(API_ROLES),),
    ).fetchall()
    assert usage == []


CALLS = [
    "select * from pgmq_public.claim_org_slot_and_read('jobs', 60, 1, 'h', 60, 1, 8)",
    "select pgmq_public.renew_org_slot('jobs', 'h', 60)",
    "select pgmq_public.release_org_slot('jobs', 'h')",
    "select pgmq_public.settle_and_claim('jobs', 'h', '[]', 1, 60, 60, 1, 8)",
    "select pgmq_public.heartbeat_org_slot('jobs', 'h', 60, 60, '[]')",
    "select pgmq_public.send_messages('jobs', '[]')",
    "select pgmq_public.once('jobs', 'k')",
    "select pgmq_public.queue_stats()",
    "select pgmq_public.maintain_queues()",
    "select pgmq_public.send('jobs', '{}')",
    "select pgmq_public.send_batch('jobs', array['{}'::jsonb])",
    "select * from pgmq_public.read('jobs', 60, 1)",
    "select * from pgmq_public.pop('jobs')",
    "select pgmq_public.archive('jobs', 1)",
    "select pgmq_public.delete('jobs', 1)",
]


@pytest.mark.parametrize("role", ["anon", "authenticated"])
def test_visitors_and_users_can_call_nothing(
    connection: psycopg.Connection, queue: str, role: str
) -> None:
    connection.execute(f"set role {role}")
    private = [
        "select fairlease.attach_queue('x')",
        "select fairlease.maintain()",
        "table fairlease.seats",
        "table pgmq.q_jobs",
    ]
    for call in CALLS + private:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(call)


def test_the_service_can_call_everything_and_needs_no_right_on_the_tables(
    connection: psycopg.Connection, queue: str
) -> None:
    connection.execute("set role service_role")
    for call in CALLS:
        connection.execute(call)


def test_the_service_cannot_move_the_clock_or_reach_the_private_schema(
    connection: psycopg.Connection, hire: Hire, send: Send
) -> None:
    send("a")
    connection.execute("set role service_role")
    for attempt in (
        (
            "create or replace function fairlease.now_() returns timestamptz language sql "
            "as 'select timestamptz ''2001-01-01'''"
        ),
        "create table fairlease.test_clock as select now() as now",
        "select fairlease.now_()",
        "update fairlease.seats set expires_at = now()",
        "select fairlease.q1_delete('{1}')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(attempt)
    for setting in ("fairlease.fake_now", "fairlease.now", "app.now"):
        connection.execute(f"set {setting} = '2001-01-01'")
    hire().plain()
    connection.execute("reset role")
    row = connection.execute(
        "select expires_at > now() from fairlease.seats where holder = 'h1'"
    ).fetchone()
    assert row == (True,)


def test_a_temporary_object_of_the_caller_is_never_used_in_place_of_ours(
    connection: psycopg.Connection, hire: Hire, send: Send
) -> None:
    send("a")
    connection.execute("grant temporary on database " + connection.info.dbname + " to service_role")
    connection.execute("set role service_role")
    connection.execute("create temp table seats (holder text); create temp table queues (id int)")
    connection.execute("set search_path = pg_temp, public")
    assert hire().plain().status == "claimed"


def test_a_plain_postgres_without_supabases_roles_takes_the_migrations(
    connection: psycopg.Connection,
) -> None:
    source = connection.execute(
        "select prosrc from pg_proc where proname = 'let_workers_call'"
    ).fetchone()
    assert source is not None
    assert "to_regrole('service_role') is not null" in source[0]
