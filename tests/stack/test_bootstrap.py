from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from fairlease.local.bootstrap import bootstrap
from fairlease.local.postgres import SUPERUSER

if TYPE_CHECKING:
    from fairlease.local.postgres import LocalPostgres


def test_roles_are_supabases(connection: psycopg.Connection) -> None:
    rows = connection.execute(
        "select rolname, rolcanlogin, rolinherit, rolbypassrls, rolsuper from pg_roles "
        "where rolname in ('anon', 'authenticated', 'service_role', 'authenticator', 'postgres') "
        "order by rolname"
    ).fetchall()
    assert rows == [
        ("anon", False, False, False, False),
        ("authenticated", False, False, False, False),
        ("authenticator", True, False, False, False),
        ("postgres", True, True, True, False),
        ("service_role", False, False, True, False),
    ]


@pytest.mark.parametrize("role", ["anon", "authenticated", "service_role"])
def test_authenticator_becomes_each_api_role(
    postgres: LocalPostgres, database: str, role: str
) -> None:
    url = database.replace("//postgres:", "//authenticator:")
    with psycopg.connect(url) as session:
        session.execute(f"set local role {role}")
        assert session.execute("select current_user").fetchone() == (role,)
        allowed = session.execute("select has_schema_privilege('pgmq_public', 'usage')").fetchone()
        assert allowed == (True,)


def test_authenticator_has_timeouts(database: str) -> None:
    with psycopg.connect(database.replace("//postgres:", "//authenticator:")) as session:
        assert session.execute("show statement_timeout").fetchone() == ("8s",)
        assert session.execute("show lock_timeout").fetchone() == ("8s",)


def test_pgmq_works_for_the_owner(connection: psycopg.Connection) -> None:
    connection.execute("select pgmq.create('letters')")
    connection.execute("select pgmq.send('letters', '{}'::jsonb)")
    rows = connection.execute("select msg_id from pgmq.read('letters', 30, 1)").fetchall()
    assert rows == [(1,)]


def test_bootstrap_twice_changes_nothing(postgres: LocalPostgres, database: str) -> None:
    name = database.rsplit("/", 1)[1]
    with psycopg.connect(database) as session:
        session.execute("select pgmq.create('kept')")
    bootstrap(postgres, name)
    with psycopg.connect(postgres.url(name, SUPERUSER)) as session:
        assert session.execute("select queue_name from pgmq.meta").fetchall() == [("kept",)]


def test_each_test_gets_its_own_database(database: str) -> None:
    with psycopg.connect(database) as session:
        assert session.execute("select count(*) from pgmq.meta").fetchone() == (0,)
