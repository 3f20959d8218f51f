"""The RPCs through PostgREST, by the `supabase` async client."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import httpx
from postgrest import APIError
from supabase import AsyncClient, AsyncClientOptions

from fairlease.errors import RpcError, TransientError
from fairlease.transports import codec
from fairlease.transports.deadline import within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlease.model import (
        ClaimAnswer,
        ClaimRequest,
        Delivery,
        Heartbeat,
        NewMessage,
        Outcome,
        Sent,
    )

SCHEMA = "pgmq_public"
# Beyond any deadline of ours: the deadline is total, httpx's timeouts are per read.
HTTP_TIMEOUT_SECONDS = 60.0
# A platform's proxy closes idle connections after a few seconds; reuse none that old.
KEEPALIVE_SECONDS = 4.0

# `APIError` loses the status of a JSON error without a code; a response hook keeps it.
_status: ContextVar[int] = ContextVar("fairlease_http_status", default=0)


async def _keep_status(response: httpx.Response) -> None:
    _status.set(response.status_code)


class PostgrestRpc:
    """`fairlease.rpc.Rpc` over HTTP; `key` is a service_role JWT or an `sb_secret_` key."""

    def __init__(self, url: str, key: str, *, connections: int = 10) -> None:
        self._url = url
        self._key = key
        self._connections = connections
        self._http: httpx.AsyncClient | None = None
        self._client: AsyncClient | None = None
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
            await self._call("settle_and_claim", arguments, timeout_seconds)
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
            "messages": [codec.new_message_json(message) for message in messages],
            "sleep_seconds": delay_seconds,
        }
        return codec.sent_of(await self._call("send_messages", arguments, timeout_seconds))

    async def send_batch(
        self, queue: str, bodies: Sequence[Any], delay_seconds: int = 0, *, timeout_seconds: float
    ) -> list[int]:
        arguments = {
            "queue_name": queue,
            "messages": list(bodies),
            "sleep_seconds": delay_seconds,
        }
        return codec.ids_of(await self._call("send_batch", arguments, timeout_seconds))

    async def archive(self, queue: str, msg_id: int, *, timeout_seconds: float) -> bool:
        arguments = {"queue_name": queue, "message_id": msg_id}
        return codec.boolean_of("archive", await self._call("archive", arguments, timeout_seconds))

    async def aclose(self) -> None:
        self._retire()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _call(self, function: str, arguments: dict[str, Any], seconds: float) -> Any:
        return await within(seconds, self._send(function, arguments), function, self._retire)

    async def _send(self, function: str, arguments: dict[str, Any]) -> Any:
        _status.set(0)
        try:
            call = self._connected().schema(SCHEMA).rpc(function, arguments)
            return (await call.execute()).data
        except APIError as error:
            raise _answered(function, error) from error
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise TransientError(_text(function, error), took_effect=False) from error
        except httpx.HTTPError as error:
            raise TransientError(_text(function, error)) from error

    def _connected(self) -> AsyncClient:
        if self._client is None:
            self._http = httpx.AsyncClient(
                timeout=HTTP_TIMEOUT_SECONDS,
                limits=httpx.Limits(
                    max_connections=self._connections, keepalive_expiry=KEEPALIVE_SECONDS
                ),
                event_hooks={"response": [_keep_status]},
            )
            options = AsyncClientOptions(
                schema=SCHEMA, httpx_client=self._http, auto_refresh_token=False
            )
            self._client = AsyncClient(self._url, self._key, options)
        return self._client

    def _retire(self) -> None:
        """The next call builds a new client; this one closes on its own time."""
        http, self._http, self._client = self._http, None, None
        if http is not None:
            task = asyncio.ensure_future(http.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


def _answered(function: str, error: APIError) -> RpcError:
    code = error.code or (_status.get() or None)
    if code is None and error.details:
        return TransientError(f"{function}: {error.message or 'no message'}")
    return codec.error_of(code, f"{function}: {error.message or 'no message'}")


def _text(function: str, error: Exception) -> str:
    return f"{function}: {type(error).__name__}: {error}".rstrip(": ")
