"""What a caller brings along in its session: none of it ever runs with the owner's rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from fairlease.admin.migrate import migrate
from security.rpc_calls import CALLS

if TYPE_CHECKING:
    from collections.abc import Iterator

# The names of types that functions use without a schema, in which a domain can be of the same name.
TYPES = ("text", "jsonb", "timestamptz", "regclass", "regprocedure", "int4", "int8", "bool", "oid")
SPY = """
create function pg_temp.spy(value anyelement) returns boolean language plpgsql as $$
begin
  insert into pg_temp.ran values (current_user);
  return true;
end $$
"""


@pytest.fixture
def caller(connection: psycopg.Connection, database: str, queue: str) -> Iterator[Any]:
    """A session of the service's role, which may make temporary objects, as PUBLIC may."""
    connection.execute(
        sql.SQL("grant temporary on database {} to service_role").format(
            sql.Identifier(connection.info.dbname)
        )
    )
    with psycopg.connect(database, autocommit=True) as session:
        session.execute("set role service_role")
        session.execute("create temp table ran (who text)")
        session.execute("grant insert on ran to public")
        session.execute(SPY)
        yield session


def call(session: psycopg.Connection, function: str) -> None:
    arguments = {
        name: Jsonb(value) if isinstance(value, dict | list) else value
        for name, value in CALLS[function].items()
    }
    if function == "send_batch":
        arguments["messages"] = [Jsonb({})]
    named = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name))
        for name in arguments
    )
    session.execute(
        sql.SQL("select pgmq_public.{}({})").format(sql.Identifier(function), named), arguments
    )


def who_ran(session: psycopg.Connection) -> list[Any]:
    return session.execute("select distinct who from pg_temp.ran").fetchall()


def test_a_temporary_type_of_a_built_ins_name_is_never_used_for_it(
    caller: psycopg.Connection,
) -> None:
    for name in TYPES:
        caller.execute(
            f"create domain pg_temp.{name} as pg_catalog.{name} check (pg_temp.spy(value))"
        )
    for function in CALLS:
        call(caller, function)
    assert who_ran(caller) == []


def test_a_temporary_type_does_not_reach_the_trigger_that_stamps_orgs(
    connection: psycopg.Connection, caller: psycopg.Connection
) -> None:
    connection.execute(
        "create function public.org_of_message(message jsonb) returns text language sql "
        "set search_path = '' as $$ select 'looked-up' $$"
    )
    connection.execute(
        "select fairlease.attach_queue('jobs', resolver => 'public.org_of_message(jsonb)')"
    )
    connection.execute("grant usage on schema pgmq to service_role")
    connection.execute("grant insert on pgmq.q_jobs to service_role")
    for name in TYPES:
        caller.execute(
            f"create domain pg_temp.{name} as pg_catalog.{name} check (pg_temp.spy(value))"
        )
    caller.execute("insert into pgmq.q_jobs (vt, message) values (now(), '{}')")
    assert connection.execute("select headers ->> 'x-org' from pgmq.q_jobs").fetchall() == [
        ("looked-up",)
    ]
    assert who_ran(caller) == []


# What functions and migrations use without a schema. Found there, each is preferred to Postgres'
# own: by the order of the path, or since its types are closer to the operands'.
TRAPS = """
create schema trap;
grant usage on schema trap, public to public;
create table trap.ran (who text);
grant insert on trap.ran to public;
create function trap.spy() returns boolean language sql volatile set search_path = pg_catalog
  as $$ insert into trap.ran values (current_user); select true $$;
"""
OPERATORS = [
    ("<", "int[]", "int[]"),
    ("=", "oid", "regtype"),
    ("=", "text", "text"),
    ("=", "bigint", "bigint"),
    ("<=", "timestamptz", "timestamptz"),
    ("||", "jsonb", "jsonb"),
    ("->>", "jsonb", "text"),
]
FUNCTIONS = [
    "format(text, regprocedure)",
    "jsonb_build_object(text, bigint)",
    "jsonb_agg(jsonb)",
    "jsonb_typeof(jsonb)",
    "octet_length(text)",
    "lower(text)",
    "clock_timestamp()",
    "to_regclass(text)",
    "hashtextextended(text, bigint)",
    "hashtextextended(text, int)",
]


def set_traps(session: psycopg.Connection, schema: str) -> None:
    session.execute(TRAPS)
    for place, (name, left, right) in enumerate(OPERATORS):
        session.execute(
            f"create function {schema}.op{place}(a {left}, b {right}) returns boolean "
            "language sql as 'select trap.spy()'"
        )
        session.execute(
            f"create operator {schema}.{name} "
            f"(function = {schema}.op{place}, leftarg = {left}, rightarg = {right})"
        )
    for function in FUNCTIONS:
        session.execute(
            f"create function {schema}.{function} returns text language sql "
            "as 'select trap.spy()::text'"
        )


def trapped(session: psycopg.Connection) -> list[Any]:
    return session.execute("select distinct who from trap.ran").fetchall()


def test_nothing_of_a_hostile_search_path_is_used(
    connection: psycopg.Connection, caller: psycopg.Connection
) -> None:
    set_traps(connection, "trap")
    caller.execute("set search_path = trap, pg_catalog")
    caller.execute("select lower('A')")
    assert trapped(connection) == [("service_role",)], "the traps are no traps"
    connection.execute("truncate trap.ran")
    for function in CALLS:
        call(caller, function)
    assert trapped(connection) == []


def test_the_migrations_use_nothing_that_somebody_put_into_public(pgmq_database: str) -> None:
    with psycopg.connect(pgmq_database, autocommit=True) as session:
        set_traps(session, "public")
        migrate(pgmq_database)
        session.execute("select fairlease.attach_queue('jobs', unique_keys => true)")
        assert trapped(session) == []


# As Supabase's guide to a schema of one's own has it, and without naming a schema.
OPEN_BY_DEFAULT = """
create schema if not exists pgmq_public;
grant usage on schema pgmq_public to anon, authenticated, service_role;
alter default privileges in schema pgmq_public grant all on functions to anon, authenticated;
alter default privileges grant all on functions to anon, authenticated;
alter default privileges grant all on tables to anon, authenticated, service_role;
alter default privileges grant all on schemas to anon, authenticated, service_role;
"""


@pytest.mark.parametrize("role", ["anon", "authenticated"])
def test_generous_default_privileges_open_nothing(pgmq_database: str, role: str) -> None:
    with psycopg.connect(pgmq_database, autocommit=True) as session:
        session.execute(OPEN_BY_DEFAULT)
        migrate(pgmq_database)
        session.execute("select fairlease.attach_queue('jobs', unique_keys => true)")
        session.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
        for function in CALLS:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                call(session, function)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="schema fairlease"):
            session.execute("table fairlease.seats")
