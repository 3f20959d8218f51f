"""A connection that sends a whole transaction in one go, statements prepared once.

A development gateway that costs several round trips a call would make every measurement through it
meaningless. psycopg's own pipeline mode costs as much in Python as it saves; what is used here is
its interface to libpq.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg import AsyncConnection, OperationalError
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, TransactionStatus

from fairlease.local.gateway.sqlstate import DatabaseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg.pq.abc import PGresult

    from fairlease.local.gateway.statement import Statement

# Beyond this many texts a connection prepares no more: filters can be different every time.
_MOST_PREPARED = 500
_TEXT, _BINARY = 0, 1


class StatementFailed(Exception):
    """`index`: which of the statements; those after it were not run."""

    def __init__(self, error: DatabaseError, index: int) -> None:
        super().__init__(error.message)
        self.error = error
        self.index = index


@dataclass(frozen=True)
class _Step:
    """One result to come: of a preparation, or of the statement itself."""

    index: int
    prepares: bytes | None = None


class PipelinedConnection(AsyncConnection[Any]):
    """Always in libpq's pipeline mode: `send` only, no `execute`."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._statement_names: dict[bytes, bytes] = {}
        self._numbers = itertools.count()
        self.pgconn.enter_pipeline_mode()

    @property
    def in_transaction(self) -> bool:
        return self.pgconn.transaction_status != TransactionStatus.IDLE

    async def send(self, statements: Sequence[Statement]) -> list[PGresult]:
        """Raises StatementFailed, and OperationalError where the connection is lost.

        A cancelled or failed exchange leaves the connection closed: its state is unknown.
        """
        try:
            steps = [
                step for index, each in enumerate(statements) for step in self._queue(index, each)
            ]
            self.pgconn.pipeline_sync()
            results = await self._receive()
        except BaseException:
            await self.close()
            raise
        return self._sorted_out(steps, results)

    def _queue(self, index: int, statement: Statement) -> list[_Step]:
        formats = [_BINARY, *[_TEXT] * len(statement.values[1:])] if statement.binary else None
        name = self._statement_names.get(statement.text)
        if name is None and len(self._statement_names) >= _MOST_PREPARED:
            self.pgconn.send_query_params(
                statement.text, list(statement.values), param_formats=formats
            )
            return [_Step(index)]
        steps = [_Step(index)]
        if name is None:
            name = b"s%d" % next(self._numbers)
            # Known from now on, so that the same text twice in one go is prepared once.
            self._statement_names[statement.text] = name
            self.pgconn.send_prepare(name, statement.text)
            steps.insert(0, _Step(index, statement.text))
        self.pgconn.send_query_prepared(name, list(statement.values), param_formats=formats)
        return steps

    async def _receive(self) -> list[PGresult]:
        """What came, which is not everything where the connection broke."""
        results: list[PGresult] = []
        # While the server does not read on it may be waiting for us to read.
        while self.pgconn.flush():
            await self._ready(reading=True, writing=True)
            self.pgconn.consume_input()
        while True:
            while self.pgconn.is_busy() and self.pgconn.status == ConnStatus.OK:
                await self._ready(reading=True, writing=False)
                # The server's last words may have arrived before its end.
                with contextlib.suppress(OperationalError):
                    self.pgconn.consume_input()
            result = self.pgconn.get_result()
            if result is None:
                if self.pgconn.status == ConnStatus.BAD:
                    return results
            elif result.status == ExecStatus.PIPELINE_SYNC:
                return results
            else:
                results.append(result)

    async def _ready(self, *, reading: bool, writing: bool) -> None:
        loop = asyncio.get_running_loop()
        ready, socket = loop.create_future(), self.pgconn.socket
        if reading:
            loop.add_reader(socket, _wake, ready)
        if writing:
            loop.add_writer(socket, _wake, ready)
        try:
            await ready
        finally:
            loop.remove_reader(socket)
            if writing:
                loop.remove_writer(socket)

    def _sorted_out(self, steps: list[_Step], results: list[PGresult]) -> list[PGresult]:
        failure: StatementFailed | None = None
        for step, result in zip(steps, results, strict=False):
            if result.status in {ExecStatus.FATAL_ERROR, ExecStatus.PIPELINE_ABORTED}:
                failure = failure or StatementFailed(_error(result), step.index)
                if step.prepares is not None:
                    self._statement_names.pop(step.prepares, None)
        if failure is not None:
            raise failure
        if len(results) < len(steps):
            raise OperationalError("the connection to the server is lost")
        return [
            result for step, result in zip(steps, results, strict=True) if step.prepares is None
        ]


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def _error(result: PGresult) -> DatabaseError:
    def field(name: DiagnosticField) -> str | None:
        value = result.error_field(name)
        return None if value is None else value.decode(errors="replace")

    return DatabaseError(
        field(DiagnosticField.SQLSTATE) or "",
        field(DiagnosticField.MESSAGE_PRIMARY) or result.error_message.decode(errors="replace"),
        field(DiagnosticField.MESSAGE_DETAIL),
        field(DiagnosticField.MESSAGE_HINT),
    )
