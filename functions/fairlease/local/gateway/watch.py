"""Keeps the schema cache: loads it, reloads it when notified, drops it without a database."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import AsyncConnection, sql

from fairlease.local.gateway.schema_cache import (
    RoleSettings,
    SchemaCache,
    everybodys_settings,
    load_role_settings,
    load_schema_cache,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fairlease.local.gateway.config import GatewayConfig

log = logging.getLogger(__name__)

_RELOADS_SCHEMA = ("reload schema", "")
_RELOADS_SETTINGS = "reload config"
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 4.0


class SchemaWatch:
    """`schema` is None until it could be loaded, and again once a reload fails."""

    def __init__(self, config: GatewayConfig, on_lost: Callable[[], Awaitable[None]]) -> None:
        """`on_lost` is called when the database, or a reload, failed."""
        self._config = config
        self._on_lost = on_lost
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        self._loading = asyncio.Lock()
        self._catalog: AsyncConnection[Any] | None = None
        self._everybodys: frozenset[str] = frozenset()
        self.first_attempt = asyncio.Event()
        self.notifications = 0
        self.schema: SchemaCache | None = None
        self.roles = RoleSettings({}, {})

    async def follow(self) -> None:
        """Runs until cancelled."""
        try:
            while True:
                try:
                    async with await self._connect() as connection:
                        await self._listen(connection)
                except psycopg.Error as error:
                    log.warning("the schema cache is gone: %s", error)
                    await self._lose()
                await self._pause()
        finally:
            await self._drop_catalog()

    async def reload(self) -> None:
        """Raises psycopg.Error where it fails; until it works there is no cache then."""
        async with self._loading:
            try:
                catalog = await self._catalog_connection()
                self.roles = await load_role_settings(catalog, self._everybodys)
                self.schema = await load_schema_cache(catalog, self._config)
            except psycopg.Error:
                self.schema = None
                await self._drop_catalog()
                raise
        self._pause_seconds = _FIRST_PAUSE_SECONDS

    async def _listen(self, connection: AsyncConnection[Any]) -> None:
        channel = sql.Identifier(self._config.db_channel)
        await connection.execute(sql.SQL("listen {}").format(channel))
        await self.reload()
        self.first_attempt.set()
        async for notification in connection.notifies():
            try:
                await self._heard(notification.payload)
            finally:
                self.notifications += 1

    async def _heard(self, payload: str) -> None:
        if payload in _RELOADS_SCHEMA:
            await self.reload()
        elif payload == _RELOADS_SETTINGS:
            async with self._loading:
                catalog = await self._catalog_connection()
                self.roles = await load_role_settings(catalog, self._everybodys)

    async def _lose(self) -> None:
        self.schema = None
        self.first_attempt.set()
        await self._drop_catalog()
        await self._on_lost()

    async def _catalog_connection(self) -> AsyncConnection[Any]:
        if self._catalog is None or self._catalog.closed:
            self._catalog = await self._connect()
            self._everybodys = await everybodys_settings(self._catalog)
        return self._catalog

    async def _drop_catalog(self) -> None:
        if self._catalog is not None:
            await self._catalog.close()
            self._catalog = None

    async def _connect(self) -> AsyncConnection[Any]:
        return await AsyncConnection.connect(self._config.database_url, autocommit=True)

    async def _pause(self) -> None:
        await asyncio.sleep(self._pause_seconds)
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)
