"""A throwaway server with pgmq and every migration, and the session that measures on it."""

from __future__ import annotations

import contextlib
import statistics
import time
from typing import TYPE_CHECKING, Any

import psycopg

from fairlease.local.bootstrap import bootstrap
from fairlease.local.postgres import LocalPostgres
from fairlease.resources import migrations_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Both sides of every ratio write; neither shall wait for this machine's disk.
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "max_connections": "120",
    "jit": "on",
}


@contextlib.contextmanager
def migrated_server(binaries: Path | None = None) -> Iterator[str]:
    """Yield the URL (role postgres) of a database that is ready for `attach_queue`."""
    with LocalPostgres(settings=SETTINGS, binaries=binaries) as server:
        bootstrap(server)
        with psycopg.connect(server.url(), autocommit=True) as session:
            for file in sorted(migrations_folder().glob("*.sql")):
                with session.transaction():
                    session.execute(file.read_bytes())
        yield server.url()


class Stopwatch:
    """Times whole calls, round trip included, and keeps the times by name."""

    def __init__(self, session: psycopg.Connection) -> None:
        self._session = session
        self._micros: dict[str, list[float]] = {}

    def call(self, name: str, statement: str, arguments: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        begun = time.perf_counter()
        rows = self._session.execute(statement, arguments, prepare=True).fetchall()
        self._micros.setdefault(name, []).append((time.perf_counter() - begun) * 1e6)
        return rows

    def median(self, name: str) -> float:
        return statistics.median(self._micros[name])

    def forget(self) -> None:
        self._micros.clear()
