from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from fairlease.local.bootstrap import bootstrap
from fairlease.local.postgres import SUPERUSER, LocalPostgres

if TYPE_CHECKING:
    from collections.abc import Iterator

MIGRATIONS = Path(__file__).parent.parent / "migrations"

# Nothing here outlives the run; autovacuum would change a plan under a test.
THROWAWAY = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_wal_size": "4GB",
}
_names = itertools.count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--postgres-binaries",
        type=Path,
        default=os.environ.get("FAIRLEASE_TEST_POSTGRES_BINARIES"),
        help="folder with another Postgres' initdb and postgres, as /usr/lib/postgresql/15/bin",
    )


@pytest.fixture(scope="session")
def postgres_binaries(request: pytest.FixtureRequest) -> Path | None:
    """None: the bundled ones."""
    chosen = request.config.getoption("--postgres-binaries")
    return Path(chosen) if chosen else None


@pytest.fixture(scope="session")
def postgres(postgres_binaries: Path | None) -> Iterator[LocalPostgres]:
    """A server of this test process with Supabase's roles. For destructive tests start your own."""
    with LocalPostgres(settings=THROWAWAY, binaries=postgres_binaries) as server:
        bootstrap(server)
        yield server


@pytest.fixture(scope="session")
def template(postgres: LocalPostgres) -> str:
    """Name of a database with pgmq and every migration, to be cloned."""
    name = "fairlease_template"
    with _superuser(postgres) as admin:
        admin.execute(sql.SQL("create database {} owner postgres").format(sql.Identifier(name)))
    bootstrap(postgres, name)
    with psycopg.connect(postgres.url(name), autocommit=True) as connection:
        for file in sorted(MIGRATIONS.glob("*.sql")):
            with connection.transaction():
                connection.execute(file.read_bytes())
    with _superuser(postgres) as admin:
        admin.execute(
            sql.SQL("alter database {} with allow_connections false is_template true").format(
                sql.Identifier(name)
            )
        )
    return name


@pytest.fixture
def database(postgres: LocalPostgres, template: str) -> Iterator[str]:
    """URL (role postgres, no superuser) of a fresh database with pgmq and every migration."""
    yield from _clone(postgres, template)


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as session:
        yield session


@pytest.fixture
def bare_database(postgres: LocalPostgres) -> Iterator[str]:
    """URL (role postgres) of an empty database: no pgmq, no migration."""
    yield from _clone(postgres, "template0")


def _clone(server: LocalPostgres, template: str) -> Iterator[str]:
    name = f"test_{next(_names)}"
    identifier = sql.Identifier(name)
    with _superuser(server) as admin:
        admin.execute(
            sql.SQL("create database {} template {} owner postgres strategy file_copy").format(
                identifier, sql.Identifier(template)
            )
        )
    yield server.url(name)
    with _superuser(server) as admin:
        admin.execute(sql.SQL("drop database {} with (force)").format(identifier))


def _superuser(server: LocalPostgres) -> psycopg.Connection:
    return psycopg.connect(server.url(user=SUPERUSER), autocommit=True)
