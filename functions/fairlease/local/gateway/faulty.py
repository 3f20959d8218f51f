"""Makes the faults happen, on the real connection."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING

from fairlease.local.gateway.errors import GatewayError
from fairlease.local.gateway.faults import Fault, FaultKind
from fairlease.local.gateway.http_request import HttpRequest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from fairlease.local.gateway.faults import Faults

TRANSPORT = "fairlease.transport"
MAX_ROWS = "fairlease.max_rows"

_HTML = (
    b"<html>\r\n<head><title>%d Bad Gateway</title></head>\r\n<body>\r\n"
    b"<center><h1>%d Bad Gateway</h1></center>\r\n<hr><center>local gateway</center>\r\n"
    b"</body>\r\n</html>\r\n"
)
_SLOW_PIECES = 10


class FaultyApp:
    """Asks the switch about every call of a function, and lets everything else through."""

    def __init__(self, app: ASGIApp, faults: Faults) -> None:
        self._app = app
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = self._picked(scope)
        if fault is None:
            await self._app(scope, receive, send)
        else:
            await _Exchange(self._app, scope, receive, send).suffer(fault)

    def _picked(self, scope: Scope) -> Fault | None:
        if scope["type"] != "http":
            return None
        request = HttpRequest(scope["method"], scope["raw_path"].decode("latin-1"), "", ())
        name = request.function_name
        return None if name is None else self._faults.pick(name)


class _Exchange:
    def __init__(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        self._app = app
        self._scope = scope
        self._receive = receive
        self._send = send

    @property
    def _transport(self) -> asyncio.Transport:
        transport: asyncio.Transport = self._scope[TRANSPORT]
        return transport

    async def suffer(self, fault: Fault) -> None:
        match fault.kind:
            case FaultKind.HTML | FaultKind.HTML_AFTER:
                await self._instead(fault, _HTML % (fault.status, fault.status), b"text/html")
            case FaultKind.EMPTY | FaultKind.EMPTY_AFTER:
                await self._instead(fault, b"", None)
            case FaultKind.DELAY | FaultKind.HANG:
                await self._wait(fault)
            case FaultKind.SLOW | FaultKind.CUT | FaultKind.BROKEN_JSON:
                await self._spoil_body(fault)
            case FaultKind.RESET_BEFORE:
                await self._reset()
            case FaultKind.RESET_AFTER:
                await self._captured()
                await self._reset()
            case FaultKind.CLOSE_IDLE:
                await self._app(self._scope, self._receive, self._send)
                asyncio.get_running_loop().call_later(fault.seconds, self._transport.close)
            case FaultKind.MAX_ROWS:
                scope = {**self._scope, MAX_ROWS: fault.rows}
                await self._app(scope, self._receive, self._send)
            case FaultKind.JWT_ISSUED_AT_FUTURE:
                await self._drain()
                await self._refuse()

    async def _instead(self, fault: Fault, body: bytes, content_type: bytes | None) -> None:
        if fault.kind in {FaultKind.HTML_AFTER, FaultKind.EMPTY_AFTER}:
            await self._captured()
        else:
            await self._drain()
        headers = [(b"content-length", str(len(body)).encode())]
        if content_type is not None:
            headers.append((b"content-type", content_type))
        await self._send(
            {"type": "http.response.start", "status": fault.status, "headers": headers}
        )
        await self._send({"type": "http.response.body", "body": body})

    async def _wait(self, fault: Fault) -> None:
        if fault.kind is FaultKind.HANG:
            await self._drain()
            await self._until_gone()
            return
        # The request is here in full, and takes effect whether its sender waits or not.
        request = [await self._receive()]
        while request[-1].get("more_body"):
            request.append(await self._receive())
        await asyncio.sleep(fault.seconds)

        async def receive() -> Message:
            return request.pop(0) if request else await self._receive()

        await self._app(self._scope, receive, self._send)

    async def _spoil_body(self, fault: Fault) -> None:
        start, body = await self._captured()
        half = body[: len(body) // 2]
        if fault.kind is FaultKind.BROKEN_JSON:
            others = [each for each in start["headers"] if each[0].lower() != b"content-length"]
            length = (b"content-length", str(len(half)).encode())
            await self._send({**start, "headers": [*others, length]})
            await self._send({"type": "http.response.body", "body": half})
            return
        await self._send(start)
        if fault.kind is FaultKind.CUT:
            await self._send({"type": "http.response.body", "body": half, "more_body": True})
            self._transport.close()
            await self._until_gone()
            return
        size = max(1, len(body) // _SLOW_PIECES)
        pieces = [body[begin : begin + size] for begin in range(0, len(body), size)]
        for piece in pieces:
            await asyncio.sleep(fault.seconds / len(pieces))
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    async def _refuse(self) -> None:
        message = "JWT issued at future"
        challenge = f'Bearer error="invalid_token", error_description="{message}"'
        answer = GatewayError(
            401, "PGRST303", message, headers=(("WWW-Authenticate", challenge),)
        ).answer()
        headers = [(name.encode(), value.encode()) for name, value in answer.headers]
        headers.append((b"content-length", str(len(answer.body)).encode()))
        await self._send(
            {"type": "http.response.start", "status": answer.status, "headers": headers}
        )
        await self._send({"type": "http.response.body", "body": answer.body})

    async def _reset(self) -> None:
        """A RST instead of a FIN: what a killed proxy or a dropped connection looks like."""
        connection = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()
        await self._until_gone()

    async def _captured(self) -> tuple[Message, bytes]:
        """Let the call take effect, and keep its answer back."""
        start: Message = {}
        parts: list[bytes] = []

        async def keep(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                parts.append(message.get("body", b""))

        await self._app(self._scope, self._receive, keep)
        return start, b"".join(parts)

    async def _drain(self) -> None:
        while (message := await self._receive())["type"] != "http.disconnect":
            if not message.get("more_body"):
                return

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
