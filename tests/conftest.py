from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from cli import Cli, caller
from fairlease.admin.migrate import migrate
from fairlease.local.bootstrap import bootstrap
from fairlease.local.postgres import SUPERUSER, LocalPostgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    with LocalPostgres(
        settings=THROWAWAY, binaries=postgres_binaries, temporary_parent=fast_folder()
    ) as server:
        bootstrap(server)
        yield server


@pytest.fixture(scope="session")
def pgmq_template(postgres: LocalPostgres) -> str:
    """Name of a database with pgmq and nothing of ours, to be cloned."""
    return _make_template(postgres, "pgmq_template", "template0", lambda _: None)


@pytest.fixture(scope="session")
def template(postgres: LocalPostgres, pgmq_template: str) -> str:
    """Name of a database with pgmq and every migration, to be cloned."""
    return _make_template(postgres, "fairlease_template", pgmq_template, migrate)


@pytest.fixture
def database(postgres: LocalPostgres, template: str) -> Iterator[str]:
    """URL (role postgres, no superuser) of a fresh database with pgmq and every migration."""
    yield from _clone(postgres, template)


@pytest.fixture(scope="module")
def module_database(postgres: LocalPostgres, template: str) -> Iterator[str]:
    """Like `database`, for tests of one module that leave each other alone."""
    yield from _clone(postgres, template)


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as session:
        yield session


@pytest.fixture
def pgmq_database(postgres: LocalPostgres, pgmq_template: str) -> Iterator[str]:
    """URL (role postgres) of a fresh database with pgmq and nothing of ours."""
    yield from _clone(postgres, pgmq_template)


@pytest.fixture
def bare_database(postgres: LocalPostgres) -> Iterator[str]:
    """URL (role postgres) of an empty database: no pgmq, no migration."""
    yield from _clone(postgres, "template0")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """`cli("migrate", "--check", url=...)` answers returncode, stdout and stderr."""
    return caller(monkeypatch, capsys)


def fast_folder() -> Path | None:
    """Memory where there is plenty: a database is cloned ten times faster than on a busy disk."""
    memory = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a private folder in it
    plenty = 2 * 1024**3
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > plenty:
        return memory
    return None


def _make_template(
    server: LocalPostgres, name: str, origin: str, fill: Callable[[str], object]
) -> str:
    with _superuser(server) as admin:
        _create(admin, name, origin)
        bootstrap(server, name)
        fill(server.url(name))
        admin.execute(
            sql.SQL("alter database {} with allow_connections false").format(sql.Identifier(name))
        )
    return name


def _create(admin: psycopg.Connection, name: str, origin: str) -> None:
    admin.execute(
        sql.SQL("create database {} template {} owner postgres strategy file_copy").format(
            sql.Identifier(name), sql.Identifier(origin)
        )
    )


def _clone(server: LocalPostgres, template: str) -> Iterator[str]:
    name = f"test_{next(_names)}"
    with _superuser(server) as admin:
        _create(admin, name, template)
    yield server.url(name)
    with _superuser(server) as admin:
        admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def _superuser(server: LocalPostgres) -> psycopg.Connection:
    return psycopg.connect(server.url(user=SUPERUSER), autocommit=True)
