"""Keeps the schema cache: loads it, reloads it when notified, drops it when the database is gone."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import AsyncConnection, sql

from fairlease.local.gateway.schema_cache import (
    RoleSettings,
    SchemaCache,
    load_role_settings,
    load_schema_cache,
)

if TYPE_CHECKING:
    from fairlease.local.gateway.config import GatewayConfig

log = logging.getLogger(__name__)

_RELOADS_SCHEMA = ("reload schema", "")
_RELOADS_SETTINGS = (*_RELOADS_SCHEMA, "reload config")
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 4.0


class SchemaWatch:
    """`schema` is None until it could be loaded, and again once a reload fails."""

    def __init__(self, config: GatewayConfig) -> None:
        self._config = config
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        self._loading = asyncio.Lock()
        self.first_attempt = asyncio.Event()
        self.schema: SchemaCache | None = None
        self.roles = RoleSettings({}, {})

    async def follow(self) -> None:
        """Runs until cancelled."""
        while True:
            try:
                async with await self._connect() as connection:
                    channel = sql.Identifier(self._config.db_channel)
                    await connection.execute(sql.SQL("listen {}").format(channel))
                    await self.reload()
                    self.first_attempt.set()
                    await self._hear(connection)
            except psycopg.Error as error:
                log.warning("the schema cache is gone: %s", error)
                self.schema = None
                self.first_attempt.set()
            await self._pause()

    async def reload(self) -> None:
        """Raises psycopg.Error where it fails; until it works there is no cache then."""
        async with self._loading:
            try:
                async with await self._connect() as connection:
                    self.roles = await load_role_settings(connection)
                    self.schema = await load_schema_cache(connection, self._config)
            except psycopg.Error:
                self.schema = None
                raise
        self._pause_seconds = _FIRST_PAUSE_SECONDS

    async def _hear(self, connection: AsyncConnection[Any]) -> None:
        async for notification in connection.notifies():
            if notification.payload in _RELOADS_SCHEMA:
                await self.reload()
            elif notification.payload in _RELOADS_SETTINGS:
                self.roles = await self._role_settings()

    async def _role_settings(self) -> RoleSettings:
        async with await self._connect() as connection:
            return await load_role_settings(connection)

    async def _connect(self) -> AsyncConnection[Any]:
        return await AsyncConnection.connect(self._config.database_url, autocommit=True)

    async def _pause(self) -> None:
        await asyncio.sleep(self._pause_seconds)
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)
