"""Connections to the database, the one used last first.

Not psycopg's pool: that one connects in the background, so that a database which is down looks like
a pool that is exhausted; here, as in PostgREST, the request that needs a connection makes it.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from psycopg import OperationalError

from fairlease.local.gateway.connection import PipelinedConnection
from fairlease.local.gateway.errors import RETRY_AT_ONCE, GatewayError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class ConnectionPool:
    """At most `size` connections; whoever waits longer than `timeout_seconds` is sent away."""

    def __init__(self, url: str, size: int, timeout_seconds: float) -> None:
        self._url = url
        self._timeout_seconds = timeout_seconds
        self._places = asyncio.Semaphore(size)
        self._idle: list[PipelinedConnection] = []

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[PipelinedConnection]:
        """Raises GatewayError: PGRST003 for no place, PGRST000 for no database."""
        await self._take_place()
        try:
            connection = self._idle.pop() if self._idle else await self._connect()
            try:
                yield connection
            finally:
                await self._give_back(connection)
        finally:
            self._places.release()

    async def close_idle(self) -> None:
        """For the end, and for when the server they lead to is gone."""
        while self._idle:
            await self._idle.pop().close()

    async def _take_place(self) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._places.acquire()
        except TimeoutError as error:
            raise GatewayError(
                504, "PGRST003", "Timed out acquiring connection from connection pool."
            ) from error

    async def _connect(self) -> PipelinedConnection:
        try:
            return await PipelinedConnection.connect(self._url, autocommit=True)
        except OperationalError as error:
            raise GatewayError(
                503,
                "PGRST000",
                "Database connection error. Retrying the connection.",
                str(error),
                headers=RETRY_AT_ONCE,
            ) from error

    async def _give_back(self, connection: PipelinedConnection) -> None:
        if connection.closed or connection.in_transaction:
            await connection.close()
        else:
            self._idle.append(connection)
