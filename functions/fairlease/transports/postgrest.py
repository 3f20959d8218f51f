"""The RPCs through PostgREST, by the `supabase` async client."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
from postgrest import APIError
from supabase import AsyncClient, AsyncClientOptions

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
# Beyond any deadline of ours: the deadline is total, httpx's timeouts are per read.
HTTP_TIMEOUT_SECONDS = 60.0
# A platform's proxy closes idle connections after a few seconds; reuse none that old.
KEEPALIVE_SECONDS = 4.0

# `APIError` loses the status of a JSON error without a code, and an empty body reads as an empty
# set; a response hook keeps both.
_status: ContextVar[int] = ContextVar("fairlease_http_status", default=0)
_is_empty: ContextVar[bool] = ContextVar("fairlease_http_is_empty", default=False)

_body: ContextVar[bytes] = ContextVar("fairlease_http_body", default=b"")


async def _look_at(response: httpx.Response) -> None:
    _status.set(response.status_code)
    body = await response.aread()
    _is_empty.set(not body)
    _body.set(body)


@dataclass(eq=False, slots=True)
class _Client:
    """One client and the calls that are on it; retired, it closes with the last of them."""

    http: httpx.AsyncClient
    api: AsyncClient
    calls: int = 0
    retired: bool = False


class PostgrestRpc:
    """`fairlease.rpc.Database` over HTTP; `key` is a service_role JWT or an `sb_secret_` key."""

    def __init__(self, url: str, key: str, *, connections: int = 10) -> None:
        self._url = url
        self._key = key
        self._connections = connections
        self._client: _Client | None = None
        self._open: set[_Client] = set()
        self._closing: set[asyncio.Task[None]] = set()

    async def claim_org_slot_and_read(
        self, request: ClaimRequest, *, timeout_seconds: float
    ) -> ClaimAnswer:
        arguments = codec.claim_arguments(request)
        return codec.claim_of_rows(
            await self._call("claim_org_slot_and_read", arguments, timeout_seconds)
        )

    async def settle_and_claim(
        self, request: ClaimRequest, outcomes: Sequence[Outcome], *, timeout_seconds: float
    ) -> ClaimAnswer:
        arguments = codec.claim_arguments(request)
        arguments["outcomes"] = [codec.outcome_json(outcome) for outcome in outcomes]
        return codec.claim_of_object(
            await self._call("settle_and_claim", arguments, timeout_seconds), len(outcomes)
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
            "deliveries": codec.deliveries_json(deliveries),
        }
        return codec.heartbeat_of(
            await self._call("heartbeat_org_slot", arguments, timeout_seconds)
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
            "renew_org_slot", await self._call("renew_org_slot", arguments, timeout_seconds)
        )

    async def release_org_slot(self, queue: str, holder: str, *, timeout_seconds: float) -> bool:
        arguments = {"queue_name": queue, "holder": holder}
        return codec.boolean_of(
            "release_org_slot", await self._call("release_org_slot", arguments, timeout_seconds)
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
            "messages": [new_message_json(message) for message in messages],
            "sleep_seconds": delay_seconds,
        }
        value = await self._call("send_messages", arguments, timeout_seconds)
        return codec.sent_of(value, len(messages))

    async def send_batch(
        self, queue: str, bodies: Sequence[Any], delay_seconds: int = 0, *, timeout_seconds: float
    ) -> list[int]:
        arguments = {
            "queue_name": queue,
            "messages": list(bodies),
            "sleep_seconds": delay_seconds,
        }
        ids = await self._call("send_batch", arguments, timeout_seconds)
        return codec.ids_of(ids, len(bodies))

    async def once(self, queue: str, key: str, token: str, *, timeout_seconds: float) -> bool:
        arguments = {"queue_name": queue, "key": key, "token": token}
        return codec.boolean_of("once", await self._call("once", arguments, timeout_seconds))

    async def archive(self, queue: str, msg_id: int, *, timeout_seconds: float) -> bool:
        arguments = {"queue_name": queue, "message_id": msg_id}
        return codec.boolean_of("archive", await self._call("archive", arguments, timeout_seconds))

    async def queue_stats(self, *, timeout_seconds: float) -> tuple[QueueStats, ...]:
        return codec.stats_of(await self._call("queue_stats", {}, timeout_seconds))

    async def maintain_queues(
        self, step_limit: int, *, timeout_seconds: float
    ) -> Mapping[str, int]:
        arguments = {"step_limit": step_limit}
        return codec.removed_of(await self._call("maintain_queues", arguments, timeout_seconds))

    async def aclose(self) -> None:
        """Calls that are still out fail."""
        self._client = None
        for client in tuple(self._open):
            self._close(client)
        if self._closing:
            await asyncio.wait(self._closing)

    async def _call(self, function: str, arguments: dict[str, Any], seconds: float) -> Any:
        return await within(seconds, self._send(function, arguments), function, self._retire)

    async def _send(self, function: str, arguments: dict[str, Any]) -> Any:
        client = self._connected()
        client.calls += 1
        try:
            return await _sent(client.api, function, arguments)
        finally:
            client.calls -= 1
            self._close_if_over(client)

    def _connected(self) -> _Client:
        if self._client is None:
            http = httpx.AsyncClient(
                timeout=HTTP_TIMEOUT_SECONDS,
                limits=httpx.Limits(
                    max_connections=self._connections, keepalive_expiry=KEEPALIVE_SECONDS
                ),
                event_hooks={"response": [_look_at]},
            )
            options = AsyncClientOptions(schema=SCHEMA, httpx_client=http, auto_refresh_token=False)
            self._client = _Client(http, AsyncClient(self._url, self._key, options))
            self._open.add(self._client)
        return self._client

    def _retire(self) -> None:
        """The next call builds a new client; this one closes once no call is left on it."""
        client, self._client = self._client, None
        if client is not None:
            client.retired = True
            self._close_if_over(client)

    def _close_if_over(self, client: _Client) -> None:
        if client.retired and not client.calls:
            self._close(client)

    def _close(self, client: _Client) -> None:
        if client in self._open:
            self._open.discard(client)
            task = asyncio.ensure_future(client.http.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


async def _sent(api: AsyncClient, function: str, arguments: dict[str, Any]) -> Any:
    _status.set(0)
    _is_empty.set(False)
    _body.set(b"")
    try:
        data = (await api.schema(SCHEMA).rpc(function, arguments).execute()).data
    except APIError as error:
        raise _answered(function, error) from error
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise TransientError(_text(function, error), took_effect=False) from error
    except (httpx.HTTPError, UnicodeDecodeError) as error:
        raise TransientError(_text(function, error)) from error
    except (RecursionError, TypeError, ValueError) as error:
        if not _status.get():
            raise codec.unsendable(function, error) from error
        # None of them says that the answer is no JSON: see `reading`.
        data = _read_with_care(function)
    if _is_empty.get():
        raise TransientError(f"{function}: the answer is empty")
    return data


def _read_with_care(function: str) -> Any:
    try:
        return loads(_body.get())
    except ValueError as error:
        raise TransientError(_text(function, error)) from error


def _answered(function: str, error: APIError) -> RpcError:
    code = error.code or _status.get()
    return codec.error_of(code, f"{function}: {error.message or 'no message'}")


def _text(function: str, error: Exception) -> str:
    return f"{function}: {type(error).__name__}: {error}".rstrip(": ")
