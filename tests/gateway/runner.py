"""Plays one recorded case against a running gateway."""

from __future__ import annotations

import http.client
import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg

from gateway import recorded
from gateway.base_state import ADMIN_TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.base_state import BaseState
    from gateway.recorded import Recorded

_NOTIFIED_SECONDS = 5.0


class Client:
    """One keep-alive connection, headers exactly as given."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port)

    def send(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes | None = None,
        patience_seconds: float = 30.0,
    ) -> tuple[int | None, bytes]:
        """Status None: no answer in time."""
        self._connection.timeout = patience_seconds
        if self._connection.sock is not None:
            self._connection.sock.settimeout(patience_seconds)
        try:
            encoded = {name: value.encode() for name, value in headers.items()}
            self._connection.request(method, path, body, encoded)
            response = self._connection.getresponse()
            return response.status, response.read()
        except TimeoutError:
            self.close()
            return None, b""

    def close(self) -> None:
        self._connection.close()


class Admin:
    """The routes for whoever runs the gateway."""

    def __init__(self, url: str) -> None:
        self._client = Client(url)

    def reload(self) -> None:
        status, body = self._send("POST", "/_gateway/reload")
        assert status == 204, body

    def notifications(self) -> int:
        return json.loads(self._send("GET", "/_gateway/status")[1])["notifications"]

    def wait_for_notification(self, before: int) -> None:
        deadline = time.monotonic() + _NOTIFIED_SECONDS
        while self.notifications() == before:
            assert time.monotonic() < deadline, "the gateway did not hear the notification"
            time.sleep(0.005)

    def close(self) -> None:
        self._client.close()

    def _send(self, method: str, path: str) -> tuple[int | None, bytes]:
        return self._client.send(method, path, {"Authorization": f"Bearer {ADMIN_TOKEN}"})


class Runner:
    """`play` returns what is wrong, or None."""

    def __init__(self, base: BaseState, url: str) -> None:
        self._base = base
        self._client = Client(url)
        self._admin = Admin(url)

    def close(self) -> None:
        self._client.close()
        self._admin.close()

    def play(self, case: Recorded) -> str | None:
        self._base.reset()
        if case.notifies_at_once:
            self._admin.reload()
            self._execute(case.setup, notified=True)
        else:
            self._execute(case.setup)
            self._admin.reload()
            self._execute(case.later_setup, notified="notify pgrst" in case.later_setup)
            if case.raw.get("reloaded_after_that"):
                self._admin.reload()
        tokens = recorded.tokens(case, time.time())
        for request in case.raw.get("pre_requests", []):
            self._request(case, request, tokens)
        with self._locked(case.locked_table):
            status, body = self._request(case, case.raw["request"], tokens)
        if not case.answered:
            # Otherwise the gateway tries on for the rest of the run.
            self._execute("drop function pgmq_public.f()")
        return self._verdict(case, status, body)

    def _verdict(self, case: Recorded, status: int | None, body: bytes) -> str | None:
        wanted_status, wanted_body = recorded.expected(case)
        if status != wanted_status:
            return f"status {status} instead of {wanted_status}: {body.decode()[:300]}"
        if status is not None and not recorded.same_body(case, wanted_body, body):
            return f"body {body.decode()[:400]!r} instead of {wanted_body[:400]!r}"
        check = case.raw.get("sql_check_after")
        if check is not None:
            rows = self._base.session.execute(check["sql"]).fetchall()
            found = [[None if cell is None else str(cell) for cell in row] for row in rows]
            if found != check["rows"]:
                return f"afterwards {found} instead of {check['rows']}"
        return None

    def _request(
        self, case: Recorded, request: dict[str, Any], tokens: dict[str, str]
    ) -> tuple[int | None, bytes]:
        headers = {
            name: recorded.with_tokens(value, tokens) for name, value in request["headers"].items()
        }
        return self._client.send(
            request["method"],
            request["path"],
            headers,
            recorded.body_of(request),
            recorded.patience_seconds(case),
        )

    def _execute(self, sql: str, *, notified: bool = False) -> None:
        if not sql:
            return
        before = self._admin.notifications() if notified else 0
        self._base.session.execute(sql)
        if notified:
            self._admin.wait_for_notification(before)

    @contextmanager
    def _locked(self, table: str | None) -> Iterator[None]:
        if table is None:
            yield
            return
        with psycopg.connect(self._base.url) as other:
            other.execute(f"lock table {table} in access exclusive mode")
            yield
