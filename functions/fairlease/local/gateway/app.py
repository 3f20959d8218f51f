"""The ASGI application: `/rest/v1/rpc/<function>`, the same without the prefix, and `/_gateway`."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Mount

from fairlease.local.gateway.admin import admin_routes
from fairlease.local.gateway.faulty import MAX_ROWS, FaultyApp
from fairlease.local.gateway.gateway import Gateway
from fairlease.local.gateway.http_request import HttpRequest
from fairlease.local.gateway.pool import ConnectionPool
from fairlease.local.gateway.transaction import ClientGone
from fairlease.local.gateway.watch import SchemaWatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.types import Message, Receive, Scope, Send

    from fairlease.local.gateway.config import GatewayConfig
    from fairlease.local.gateway.errors import Answer

_BODILESS = (204, 304)


def create_app(config: GatewayConfig, now: Callable[[], float] = time.time) -> Starlette:  # noqa: TID251
    """Opens its connections in the lifespan; is ready before the database is."""
    endpoint = _Endpoint()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        pool = ConnectionPool(
            config.database_url, config.db_pool, config.db_pool_acquisition_timeout_seconds
        )
        watch = SchemaWatch(config, on_lost=pool.close_idle)
        following = asyncio.create_task(watch.follow())
        endpoint.gateway = Gateway(config, watch, pool, now)
        app.state.watch = watch
        yield
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
        await pool.close_idle()

    return Starlette(
        routes=[*admin_routes(config), Mount("/", FaultyApp(endpoint, config.faults))],
        lifespan=lifespan,
    )


class _Endpoint:
    """From ASGI to the gateway and back, for every method there is."""

    gateway: Gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body, gone = await _read_body(receive)
        if gone:
            return

        async def client_gone() -> bool:
            # What comes after the body can only be the end of the connection.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.001):
                    return bool((await receive())["type"] == "http.disconnect")
            return False

        with contextlib.suppress(ClientGone):
            answer = await self.gateway.answer(
                _request(scope, body), client_gone, scope.get(MAX_ROWS)
            )
            await send_answer(answer, send)


async def send_answer(answer: Answer, send: Send) -> None:
    body = b"" if answer.status in _BODILESS else answer.body
    headers = [(name.encode(), _one_line(value)) for name, value in answer.headers]
    if answer.status not in _BODILESS:
        headers.append((b"Content-Length", str(len(body)).encode()))
    start: Message = {
        "type": "http.response.start",
        "status": answer.status,
        "headers": headers,
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})


def _one_line(value: str) -> bytes:
    """Functions may set headers; none of them starts another one."""
    return " ".join(value.splitlines()).encode(errors="replace")


async def _read_body(receive: Receive) -> tuple[bytes, bool]:
    """The body, and whether the client went away in its middle."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"", True
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts), False


def _request(scope: Scope, body: bytes) -> HttpRequest:
    return HttpRequest(
        method=scope["method"],
        path=scope["raw_path"].decode("latin-1"),
        query=scope["query_string"].decode("latin-1"),
        headers=tuple(
            (name.decode("latin-1"), value.decode(errors="replace"))
            for name, value in scope["headers"]
        ),
        body=body,
    )
