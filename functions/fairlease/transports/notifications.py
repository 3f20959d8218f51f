"""Hears of new messages: LISTEN on a connection of its own, proven, watched and made again.

A notification is a hint. Each may be lost, so whoever listens polls as well, and every new
connection wakes all: nobody knows what was said while there was none.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from fairlease.pacing import PollingDelay

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

    from fairlease.clock import Clock

log = logging.getLogger("fairlease.listen")

CONNECT_SECONDS = 5
# How long a notification of ours may take to come back before the connection counts as deaf.
PROOF_SECONDS = 5.0
# A connection that says nothing is asked whether it lives.
LIVENESS_SECONDS = 30.0
ANSWER_SECONDS = 5.0
RECONNECT_SECONDS = 0.5
LONGEST_RECONNECT_SECONDS = 60.0
# pgmq's default, where we may not read what is set.
THROTTLE_SECONDS = 0.25
# What is added to a throttle: the clocks of server and worker do not start together.
_AFTER_THROTTLE_SECONDS = 0.05

_TRIGGERS = """
select c.relname from pg_catalog.pg_trigger t
join pg_catalog.pg_class c on c.oid = t.tgrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'pgmq' and t.tgname = 'trigger_notify_queue_insert_listeners'
  and t.tgenabled in ('O', 'A') and c.relname = any (%s)
"""
_THROTTLES = "select queue_name, throttle_interval_ms from pgmq.notify_insert_throttle"


class _Deaf(Exception):
    """The connection takes a LISTEN and hears nothing."""


@dataclass(slots=True)
class Listener:
    """Calls `wake` with the name of a queue that has a new message, on the loop that runs it.

    `url` is a libpq connection string. It must lead to a session of Postgres: a pooler in
    transaction mode takes the LISTEN and delivers nothing, which is found out and said.
    """

    url: str
    queues: Sequence[str]
    wake: Callable[[str], None]
    clock: Clock
    dice: random.Random
    _again: dict[str, asyncio.TimerHandle] = field(default_factory=dict)
    _throttles: Mapping[str, float] = field(default_factory=dict)
    _said: str = ""

    async def run(self) -> None:
        """Until cancelled. Never raises for what the database or the network does."""
        delay = PollingDelay(
            self.dice,
            busy_seconds=RECONNECT_SECONDS,
            idle_seconds=RECONNECT_SECONDS,
            max_seconds=LONGEST_RECONNECT_SECONDS,
        )
        try:
            while True:
                try:
                    async with self._listening() as connection:
                        delay.after_work()
                        await self._relay(connection)
                except (psycopg.Error, OSError, TimeoutError) as error:
                    self._say(f"no connection to listen on ({_why(error)})")
                except _Deaf:
                    self._say(
                        "notifications do not arrive: a pooler in transaction mode? give a direct "
                        "or session-mode FAIRLEASE_DATABASE_URL"
                    )
                await self.clock.sleep(delay.after_error())
        finally:
            for timer in self._again.values():
                timer.cancel()

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[psycopg.AsyncConnection]:
        async with await self._connect() as connection:
            for queue in self.queues:
                await _listen(connection, channel_of(queue))
            await self._prove(connection)
            throttles = await _throttles(connection)
            self._throttles = throttles or {}
            self._say_listening(await _silent(connection, self.queues, throttles))
            for queue in self.queues:
                self.wake(queue)
            yield connection

    async def _relay(self, connection: psycopg.AsyncConnection) -> None:
        queue_of = {channel_of(queue): queue for queue in self.queues}
        while True:
            async for notification in connection.notifies(timeout=LIVENESS_SECONDS):
                queue = queue_of.get(notification.channel)
                if queue is not None:
                    self._heard(queue)
            # A connection that a firewall forgot looks just like one on which nothing happens.
            async with asyncio.timeout(ANSWER_SECONDS):
                await connection.execute("select 1")

    def _heard(self, queue: str) -> None:
        """Wake now, and once more when the throttle is over, within which pgmq says nothing."""
        self.wake(queue)
        throttle = self._throttles.get(queue.lower(), THROTTLE_SECONDS)
        if throttle:
            if (pending := self._again.pop(queue, None)) is not None:
                pending.cancel()
            seconds = throttle + _AFTER_THROTTLE_SECONDS
            loop = asyncio.get_running_loop()
            self._again[queue] = loop.call_later(seconds, self.wake, queue)

    async def _prove(self, connection: psycopg.AsyncConnection) -> None:
        """Raise unless a notification that another session sends arrives here."""
        channel = f"fairlease.{secrets.token_hex(8)}"
        await _listen(connection, channel)
        async with await self._connect() as other:
            await other.execute("select pg_catalog.pg_notify(%s, '')", [channel])
            async for notification in connection.notifies(timeout=PROOF_SECONDS):
                if notification.channel == channel:
                    break
            else:
                raise _Deaf
        await connection.execute(sql.SQL("unlisten {}").format(sql.Identifier(channel)))

    async def _connect(self) -> psycopg.AsyncConnection:
        return await psycopg.AsyncConnection.connect(
            self.url,
            autocommit=True,
            # A pooler may give each statement another session.
            prepare_threshold=None,
            connect_timeout=CONNECT_SECONDS,
            application_name="fairlease listen",
        )

    def _say_listening(self, silent: Sequence[str]) -> None:
        if self._said:
            log.info("listening again")
        self._said = ""
        for queue in silent:
            log.warning(
                "queue %s does not tell of new messages and is polled; run `fairlease queue "
                "notify %s`",
                queue,
                queue,
            )

    def _say(self, why: str) -> None:
        """Once for each reason, until it listens again."""
        if why != self._said:
            log.warning("%s; the queues are polled", why)
        self._said = why


def channel_of(queue: str) -> str:
    """Where pgmq tells of inserts; it lower-cases the names of tables."""
    return f"pgmq.q_{queue.lower()}.INSERT"


async def _listen(connection: psycopg.AsyncConnection, channel: str) -> None:
    await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))


async def _silent(
    connection: psycopg.AsyncConnection,
    queues: Iterable[str],
    throttles: Mapping[str, float] | None,
) -> tuple[str, ...]:
    """Queues without pgmq's trigger, or whose throttle is gone: its table is not crash-safe."""
    tables = {queue: f"q_{queue.lower()}" for queue in queues}
    cursor = await connection.execute(_TRIGGERS, [list(tables.values())])
    found = {name for (name,) in await cursor.fetchall()}
    return tuple(
        queue
        for queue, table in tables.items()
        if table not in found or (throttles is not None and queue.lower() not in throttles)
    )


async def _throttles(connection: psycopg.AsyncConnection) -> dict[str, float] | None:
    """In seconds, by queue; None where this role may not read them, or pgmq has none."""
    try:
        cursor = await connection.execute(_THROTTLES)
    except psycopg.errors.ProgrammingError:
        return None
    return {queue.lower(): ms / 1000 for queue, ms in await cursor.fetchall()}


def _why(error: Exception) -> str:
    """Never the driver's whole text: it may repeat the connection string."""
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return error.diag.message_primary
    return type(error).__name__
