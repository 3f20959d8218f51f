"""One call, one transaction: begin, settings, the call, commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import OperationalError
from psycopg.pq import Escaping

from fairlease.local.gateway.connection import StatementFailed
from fairlease.local.gateway.errors import RETRY_AT_ONCE, GatewayError
from fairlease.local.gateway.sqlstate import http_error
from fairlease.local.gateway.statement import Statement

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fairlease.local.gateway.connection import PipelinedConnection
    from fairlease.local.gateway.pool import ConnectionPool

_BODY = 2
_BYTEA = 17
_RETRIED = ("40001", "40P01")
_COMMIT = Statement(b"commit")
_ROLLBACK = Statement(b"rollback")
_CHECK_CONSTRAINTS = Statement(b"set constraints all immediate")


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


@dataclass(frozen=True)
class Outcome:
    """The columns of the call's one row."""

    total: int | None
    page: int
    body: bytes
    headers: bytes | None
    status: bytes | None


@dataclass(frozen=True)
class Transaction:
    """`settings` hold for this transaction; `check` may refuse the outcome, which rolls it back."""

    call: Statement
    settings: Sequence[tuple[str, str]]
    isolation_level: str
    read_only: bool
    rolls_back: bool = False
    check: Callable[[Outcome], GatewayError | None] | None = None

    @property
    def opening(self) -> list[Statement]:
        access = "read only" if self.read_only else "read write"
        begin = f"begin isolation level {self.isolation_level} {access}"
        return [Statement(begin.encode()), _set_configuration(self.settings)]


async def run_transaction(
    pool: ConnectionPool,
    transaction: Transaction,
    *,
    anonymous: bool,
    client_gone: Callable[[], Awaitable[bool]],
) -> Outcome:
    """Raises GatewayError. A serialization failure or a deadlock is tried again, without limit."""
    while True:
        try:
            async with pool.connection() as connection:
                return await _run_once(connection, transaction)
        except StatementFailed as failure:
            if failure.error.sqlstate not in _RETRIED:
                raise http_error(failure.error, anonymous=anonymous) from failure
        except OperationalError as error:
            raise _client_error(str(error)) from error
        if await client_gone():
            raise ClientGone


async def _run_once(connection: PipelinedConnection, transaction: Transaction) -> Outcome:
    opening = transaction.opening
    # Commit goes along where nothing can be held against the outcome.
    ending = [] if transaction.check or transaction.rolls_back else [_COMMIT]
    try:
        results = await connection.send([*opening, transaction.call, *ending])
    except StatementFailed as failure:
        if failure.index > 0:
            await _roll_back(connection)
        raise
    called = results[len(opening)]
    total, page, body, headers, status = (called.get_value(0, column) for column in range(5))
    if body is not None and called.ftype(_BODY) == _BYTEA:
        body = Escaping().unescape_bytea(body)
    outcome = Outcome(
        total=None if total is None else int(total),
        page=int(page or 0),
        body=body or b"",
        headers=headers,
        status=status,
    )
    if not ending:
        await _end(connection, transaction, outcome)
    return outcome


async def _end(connection: PipelinedConnection, transaction: Transaction, outcome: Outcome) -> None:
    refusal = transaction.check(outcome) if transaction.check else None
    if refusal is not None:
        await _roll_back(connection)
        raise refusal
    ending = [_CHECK_CONSTRAINTS, _ROLLBACK] if transaction.rolls_back else [_COMMIT]
    try:
        await connection.send(ending)
    except StatementFailed:
        await _roll_back(connection)
        raise


async def _roll_back(connection: PipelinedConnection) -> None:
    if connection.broken:
        raise _client_error("no connection to the server\n")
    if connection.in_transaction:
        await connection.send([_ROLLBACK])


def _set_configuration(settings: Sequence[tuple[str, str]]) -> Statement:
    calls = [
        f"set_config(${position}, ${position + 1}, true)"
        for position in range(1, 2 * len(settings), 2)
    ]
    values = tuple(text.encode() for setting in settings for text in setting)
    return Statement(f"select {', '.join(calls)}".encode(), values)


def _client_error(details: str) -> GatewayError:
    return GatewayError(
        503,
        "PGRST001",
        "Database client error. Retrying the connection.",
        details,
        headers=RETRY_AT_ONCE,
    )
