"""Debian's Postgres 15 with its real pg_cron, and a sender in place of pg_net's worker."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

import httpx
import psycopg

from fairlease.local.bootstrap import bootstrap
from fairlease.local.postgres import SUPERUSER, LocalPostgres

if TYPE_CHECKING:
    from collections.abc import Iterator

BINARIES = Path("/usr/lib/postgresql/15/bin")
_LIBRARY = Path("/usr/lib/postgresql/15/lib/pg_cron.so")
STAND_INS = Path(__file__).with_name("supabase_cron.sql")
MISSING = "no pg_cron here: apt-get install postgresql-15-cron"
VAULT_SECRET = "edge_function_secret"
_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_preload_libraries": "pg_cron",
    "cron.database_name": "postgres",
    "cron.use_background_workers": "on",
    "max_worker_processes": "16",
}
_POLL_SECONDS = 0.2


def is_installed() -> bool:
    return _LIBRARY.exists()


@contextlib.contextmanager
def postgres_with_cron(temporary_parent: Path | None = None) -> Iterator[LocalPostgres]:
    """With Supabase's roles and pgmq; the role postgres may schedule, as on Supabase."""
    with LocalPostgres(
        settings=_SETTINGS, binaries=BINARIES, temporary_parent=temporary_parent
    ) as server:
        bootstrap(server)
        with psycopg.connect(server.url(user=SUPERUSER), autocommit=True) as admin:
            admin.execute("create extension pg_cron")
            admin.execute("grant usage on schema cron to postgres")
            admin.execute(STAND_INS.read_text())
        yield server


class PokeSender:
    """Sends what `net.http_post` queued, each request once, and keeps the answers."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pg_net", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        with (
            psycopg.connect(self._url, autocommit=True) as session,
            httpx.Client(trust_env=False) as client,
        ):
            session.execute("listen pg_net")
            while not self._stopping.is_set():
                for request in session.execute("delete from net.http_request_queue returning *"):
                    self._send(session, client, request)
                for _ in session.notifies(timeout=_POLL_SECONDS, stop_after=1):
                    pass

    def _send(
        self, session: psycopg.Connection, client: httpx.Client, request: tuple[object, ...]
    ) -> None:
        number, method, url, headers, body, timeout_milliseconds = request
        status, content, late, error = None, None, False, None
        try:
            answer = client.request(
                str(method),
                str(url),
                headers=headers,  # type: ignore[arg-type] - jsonb
                content=body,  # type: ignore[arg-type] - bytea
                timeout=int(str(timeout_milliseconds)) / 1000,
            )
            status, content = answer.status_code, answer.text
        except httpx.HTTPError as failed:
            late, error = isinstance(failed, httpx.TimeoutException), str(failed)
        session.execute(
            "insert into net._http_response (id, status_code, content, timed_out, error_msg)"
            " values (%s, %s, %s, %s, %s)",
            (number, status, content, late, error),
        )
