"""Two sessions in a known order: one is seen to wait before the other goes on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable

_DEADLINE_SECONDS = 20.0


class Call:
    """A blocking call of its own session, in a thread."""

    def __init__(self, watcher: psycopg.Connection, session: psycopg.Connection) -> None:
        self._watcher = watcher
        self._pid = session.info.backend_pid
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def start(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Self:
        def run() -> None:
            try:
                self._result = function(*arguments, **named)
            except psycopg.Error as error:
                self._error = error

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        return self

    def seen_waiting(self) -> Self:
        """Return once the server says that the session waits for a lock."""
        pause = threading.Event()
        for _ in range(int(_DEADLINE_SECONDS / 0.005)):
            row = self._watcher.execute(
                "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s",
                (self._pid,),
            ).fetchone()
            if row == (True,):
                return self
            assert self._thread is not None
            assert self._thread.is_alive(), f"it did not wait: {self._result} {self._error}"
            pause.wait(0.005)
        raise AssertionError("the session never waited for a lock")

    def result(self) -> Any:
        assert self._thread is not None
        self._thread.join(_DEADLINE_SECONDS)
        assert not self._thread.is_alive(), "the call never came back"
        if self._error is not None:
            raise self._error
        return self._result
