"""The RPCs on a direct connection, by `psycopg` and its pool."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb, set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from fairlease.errors import RpcError, TransientError
from fairlease.messages.outgoing import new_message_json
from fairlease.transports import codec
from fairlease.transports.deadline import within
from fairlease.transports.reading import loads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlease.model import (
        ClaimAnswer,
        ClaimRequest,
        Delivery,
        Heartbeat,
        NewMessage,
        Outcome,
        QueueStats,
        Sent,
    )

SCHEMA = "pgmq_public"
# Named, so that a column added by a later version cannot change a prepared statement's result.
# As JSON says it, since the driver refuses a row with an instant beyond Python's.
CLAIM_COLUMNS = "status, org, msg_id, read_ct, to_json(enqueued_at) as enqueued_at, message"
VALUE = "value"
CONNECT_SECONDS = 5


class PostgresRpc:
    """`fairlease.rpc.Database` over a pool; `url` is a libpq connection string."""

    def __init__(self, url: str, *, connections: int = 4) -> None:
        self._url = url
        self._connections = connections
        self._pool: AsyncConnectionPool[psycopg.AsyncConnection[dict[str, Any]]] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def claim_org_slot_and_read(
        self, request: ClaimRequest, *, timeout_seconds: float
    ) -> ClaimAnswer:
        arguments = codec.claim_arguments(request)
        rows = await self._call(
            "claim_org_slot_and_read", arguments, timeout_seconds, columns=CLAIM_COLUMNS
        )
        return codec.claim_of_rows(rows)

    async def settle_and_claim(
        self, request: ClaimRequest, outcomes: Sequence[Outcome], *, timeout_seconds: float
    ) -> ClaimAnswer:
        arguments = codec.claim_arguments(request)
        arguments["outcomes"] = Jsonb([codec.outcome_json(outcome) for outcome in outcomes])
        return codec.claim_of_object(
            await self._value("settle_and_claim", arguments, timeout_seconds), len(outcomes)
        )

    async def heartbeat_org_slot(
        self,
        queue: str,
        holder: str,
        lease_ttl_seconds: int,
        sleep_seconds: int,
        deliveries: Sequence[Delivery],
        *,
        timeout_seconds: float,
    ) -> Heartbeat:
        arguments = {
            "queue_name": queue,
            "holder": holder,
            "lease_ttl_seconds": lease_ttl_seconds,
            "sleep_seconds": sleep_seconds,
            "deliveries": Jsonb(codec.deliveries_json(deliveries)),
        }
        return codec.heartbeat_of(
            await self._value("heartbeat_org_slot", arguments, timeout_seconds)
        )

    async def renew_org_slot(
        self, queue: str, holder: str, lease_ttl_seconds: int, *, timeout_seconds: float
    ) -> bool:
        arguments = {
            "queue_name": queue,
            "holder": holder,
            "lease_ttl_seconds": lease_ttl_seconds,
        }
        return codec.boolean_of(
            "renew_org_slot", await self._value("renew_org_slot", arguments, timeout_seconds)
        )

    async def release_org_slot(self, queue: str, holder: str, *, timeout_seconds: float) -> bool:
        arguments = {"queue_name": queue, "holder": holder}
        return codec.boolean_of(
            "release_org_slot", await self._value("release_org_slot", arguments, timeout_seconds)
        )

    async def send_messages(
        self,
        queue: str,
        messages: Sequence[NewMessage],
        delay_seconds: int = 0,
        *,
        timeout_seconds: float,
    ) -> Sent:
        arguments = {
            "queue_name": queue,
            "messages": Jsonb([new_message_json(message) for message in messages]),
            "sleep_seconds": delay_seconds,
        }
        value = await self._value("send_messages", arguments, timeout_seconds)
        return codec.sent_of(value, len(messages))

    async def send_batch(
        self, queue: str, bodies: Sequence[Any], delay_seconds: int = 0, *, timeout_seconds: float
    ) -> list[int]:
        arguments = {
            "queue_name": queue,
            "messages": [Jsonb(body) for body in bodies],
            "sleep_seconds": delay_seconds,
        }
        ids = await self._values("send_batch", arguments, timeout_seconds)
        return codec.ids_of(ids, len(bodies))

    async def once(self, queue: str, key: str, token: str, *, timeout_seconds: float) -> bool:
        arguments = {"queue_name": queue, "key": key, "token": token}
        return codec.boolean_of("once", await self._value("once", arguments, timeout_seconds))

    async def archive(self, queue: str, msg_id: int, *, timeout_seconds: float) -> bool:
        arguments = {"queue_name": queue, "message_id": msg_id}
        return codec.boolean_of("archive", await self._value("archive", arguments, timeout_seconds))

    async def queue_stats(self, *, timeout_seconds: float) -> tuple[QueueStats, ...]:
        return codec.stats_of(await self._value("queue_stats", {}, timeout_seconds))

    async def maintain_queues(
        self, step_limit: int, *, timeout_seconds: float
    ) -> Mapping[str, int]:
        arguments = {"step_limit": step_limit}
        return codec.removed_of(await self._value("maintain_queues", arguments, timeout_seconds))

    async def aclose(self) -> None:
        self._retire()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _value(self, function: str, arguments: Mapping[str, Any], seconds: float) -> Any:
        rows = await self._call(function, arguments, seconds, columns=VALUE)
        return rows[0]["value"] if rows else None

    async def _values(self, function: str, arguments: Mapping[str, Any], seconds: float) -> Any:
        rows = await self._call(function, arguments, seconds, columns=VALUE)
        return [row["value"] for row in rows]

    async def _call(
        self,
        function: str,
        arguments: Mapping[str, Any],
        seconds: float,
        *,
        columns: LiteralString,
    ) -> list[dict[str, Any]]:
        statement = _statement(function, columns, tuple(arguments))
        call = self._execute(function, statement, arguments, seconds)
        return await within(seconds, call, function, self._retire)

    async def _execute(
        self, function: str, statement: bytes, arguments: Mapping[str, Any], seconds: float
    ) -> list[dict[str, Any]]:
        try:
            pool = await self._connected()
            async with pool.connection(timeout=seconds) as connection:
                cursor = await connection.execute(statement, arguments)
                return await cursor.fetchall()
        except (PoolTimeout, PoolClosed) as error:
            raise TransientError(
                f"{function}: no connection: {error}", took_effect=False
            ) from error
        except psycopg.Error as error:
            raise self._failed(function, error) from error
        except (RecursionError, TypeError, ValueError) as error:
            raise codec.unsendable(function, error) from error

    def _failed(self, function: str, error: psycopg.Error) -> RpcError:
        message = f"{function}: {error.diag.message_primary or str(error) or type(error).__name__}"
        if isinstance(error, psycopg.errors.FeatureNotSupported) and "cached plan" in message:
            # The schema moved under a prepared statement; only a new connection forgets it.
            self._retire()
            return TransientError(message, code=error.sqlstate or "", took_effect=False)
        if error.sqlstate is None and isinstance(error, psycopg.OperationalError):
            return TransientError(message)
        return codec.error_of(error.sqlstate, message)

    async def _connected(self) -> AsyncConnectionPool[psycopg.AsyncConnection[dict[str, Any]]]:
        if self._pool is None:
            self._pool = AsyncConnectionPool(
                self._url,
                min_size=1,
                max_size=self._connections,
                open=False,
                configure=_configure,
                kwargs={
                    "autocommit": True,
                    "row_factory": dict_row,
                    "connect_timeout": CONNECT_SECONDS,
                    "application_name": "fairlease",
                },
            )
            await self._pool.open(wait=False)
        return self._pool

    def _retire(self) -> None:
        """The next call opens a new pool; this one closes on its own time."""
        pool, self._pool = self._pool, None
        if pool is not None:
            task = asyncio.ensure_future(pool.close(timeout=1.0))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    set_json_loads(loads, connection)


@functools.cache
def _statement(function: str, columns: LiteralString, arguments: tuple[str, ...]) -> bytes:
    """Composed once: there are as many as there are functions and ways to call them."""
    return (
        sql.SQL("select {} from {}({}) as {}")
        .format(
            sql.SQL(columns),
            sql.Identifier(SCHEMA, function),
            sql.SQL(", ").join(
                sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name))
                for name in arguments
            ),
            sql.Identifier(VALUE if columns == VALUE else "answer"),
        )
        .as_bytes()
    )
