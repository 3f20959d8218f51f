"""The files themselves: run again, and over what a database already holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pgmq.install import get_embedded_install_sql

MIGRATIONS = sorted((Path(__file__).parents[2] / "migrations").glob("*.sql"))


def apply(session: psycopg.Connection, files: list[Path] = MIGRATIONS) -> None:
    for file in files:
        with session.transaction():
            session.execute(file.read_bytes())


@pytest.fixture
def bare(bare_database: str) -> Any:
    with psycopg.connect(bare_database, autocommit=True) as session:
        yield session


@pytest.fixture
def fresh(bare: psycopg.Connection) -> psycopg.Connection:
    bare.execute(get_embedded_install_sql())
    return bare


def schema(session: psycopg.Connection) -> list[Any]:
    return session.execute(
        """
        select 'f', p.oid::regprocedure::text, md5(p.prosrc || coalesce(p.proconfig::text, ''))
        from pg_proc p where p.pronamespace::regnamespace::text in ('fairlease', 'pgmq_public')
        union all
        select 'c', a.attrelid::regclass || '.' || a.attname, format_type(a.atttypid, a.atttypmod)
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        where c.relnamespace::regnamespace::text in ('fairlease', 'pgmq_public')
          and a.attnum > 0 and c.relkind in ('r', 'c')
        order by 1, 2
        """
    ).fetchall()


def test_every_file_locks_first_and_reloads_the_api_last() -> None:
    for file in MIGRATIONS:
        text = file.read_text(encoding="utf-8")
        statements = re.sub(r"^--.*\n", "", text, flags=re.MULTILINE).strip()
        assert statements.startswith("select pg_catalog.pg_advisory_xact_lock("), file.name
        assert text.rstrip().endswith("notify pgrst, 'reload schema';"), file.name
        assert not re.search(r"^\s*(begin|commit);", text, re.MULTILINE | re.IGNORECASE), file.name


def test_no_function_is_longer_than_sixty_lines() -> None:
    for file in MIGRATIONS:
        text = file.read_text(encoding="utf-8")
        for function in re.findall(
            r"^create or replace function .*?^\$(?:make)?\$;?", text, re.MULTILINE | re.DOTALL
        ):
            assert function.count("\n") <= 75, function[:80]


def test_all_files_run_again_change_nothing(fresh: psycopg.Connection) -> None:
    apply(fresh)
    fresh.execute("select fairlease.attach_queue('jobs')")
    fresh.execute("insert into fairlease.org_limits (org, paused) values ('a', true)")
    before = schema(fresh)
    apply(fresh)
    assert schema(fresh) == before
    assert fresh.execute("select count(*) from fairlease.seats").fetchone() == (1024,)
    assert fresh.execute("select count(*) from fairlease.org_limits").fetchone() == (1,)


def test_a_claim_function_of_any_older_shape_is_replaced(fresh: psycopg.Connection) -> None:
    fresh.execute(
        """
        create schema pgmq_public;
        create function pgmq_public.claim_org_slot_and_read(
          queue_name text, sleep_seconds int, n int, holder text, lease_ttl_seconds int,
          max_per_org int, global_cap int
        ) returns table (status text, msg_id bigint) language sql as 'select ''old'', 1::bigint';
        create function pgmq_public.claim_org_slot_and_read(
          queue_name text, sleep_seconds int, n int, holder text, lease_ttl_seconds int,
          max_per_org int, global_cap int, pin_org text
        ) returns setof text language sql as 'select ''old''';
        create function pgmq_public.renew_org_slot(queue_name text, holder text, ttl int)
        returns int language sql as 'select 1';
        """
    )
    apply(fresh)
    names = fresh.execute(
        "select oid::regprocedure::text from pg_proc where pronamespace = "
        "'pgmq_public'::regnamespace and proname ~ 'org_slot' order by 1"
    ).fetchall()
    assert [name.split("(")[0] for (name,) in names] == [
        "pgmq_public.claim_org_slot_and_read",
        "pgmq_public.heartbeat_org_slot",
        "pgmq_public.release_org_slot",
        "pgmq_public.renew_org_slot",
    ]


def test_wrappers_that_exist_are_left_alone(fresh: psycopg.Connection) -> None:
    fresh.execute(
        "create schema pgmq_public; create function pgmq_public.send(queue_name text, "
        "message jsonb, sleep_seconds integer default 0) returns setof bigint language sql "
        "as 'select 42::bigint'"
    )
    apply(fresh)
    assert fresh.execute("select pgmq_public.send('x', '{}')").fetchone() == (42,)
    assert fresh.execute(
        "select count(*) from pg_proc where proname = 'send_batch' and "
        "pronamespace = 'pgmq_public'::regnamespace"
    ).fetchone() == (1,)


def test_a_server_without_pgmq_is_told_so(bare: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match="create extension pgmq"):
        apply(bare, MIGRATIONS[:1])
    assert bare.execute("select to_regnamespace('fairlease')").fetchone() == (None,)


def test_a_failure_half_way_is_made_good_by_running_again(fresh: psycopg.Connection) -> None:
    apply(fresh, MIGRATIONS[:12])
    with fresh.transaction(force_rollback=True):
        fresh.execute(MIGRATIONS[12].read_bytes())
    apply(fresh)
    assert fresh.execute("select to_regproc('pgmq_public.settle_and_claim')").fetchone() != (None,)
