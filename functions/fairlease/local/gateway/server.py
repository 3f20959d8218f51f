"""Serves the gateway on loopback: it is for development and tests, and nothing else.

uvicorn rather than the function host's server: it costs less per request, and hands out the
transport, without which a connection cannot be reset.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from fairlease.errors import ConfigurationError
from fairlease.local.gateway.app import create_app
from fairlease.local.gateway.coalescing import CoalescingTransport
from fairlease.local.gateway.faulty import TRANSPORT

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from starlette.types import Receive, Scope, Send

    from fairlease.local.gateway.config import GatewayConfig

_START_SECONDS = 30.0
_KEEP_ALIVE_SECONDS = 30
_LONGEST_HEADERS_BYTES = 65536
_BACKLOG = 512


class _Protocol(HttpToolsProtocol):
    """Puts the connection's transport into the scope of its requests."""

    _received = b""

    def connection_made(  # type: ignore[override] # as uvicorn does
        self, transport: asyncio.Transport
    ) -> None:
        coalescing: Any = CoalescingTransport(transport, self.loop)
        super().connection_made(coalescing)
        app: Any = self.app

        async def with_transport(scope: Scope, receive: Receive, send: Send) -> None:
            scope[TRANSPORT] = coalescing
            await app(scope, receive, send)

        self.app = with_transport

    def data_received(self, data: bytes) -> None:
        self._received = data
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Not before the slower parser has looked, which knows every method there may be."""
        under_way: RequestResponseCycle | None = self.cycle
        if under_way is not None and not under_way.response_complete:
            super().send_400_response(msg)
            return
        slower = H11Protocol(self.config, self.server_state, self.app_state)
        slower.app = self.app
        self.connections.discard(self)
        slower.connection_made(self.transport)
        self.transport.set_protocol(slower)
        slower.data_received(self._received)


def serve(
    config: GatewayConfig,
    host: str = "127.0.0.1",
    port: int = 0,
    on_ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Until SIGINT or SIGTERM. `port` 0: a free one; `on_ready` gets the URL."""
    listener = _listen(host, port)
    server = _Server(config, lambda: on_ready(_url(listener)))
    server.run(sockets=[listener])


@contextlib.contextmanager
def running_gateway(config: GatewayConfig, port: int = 0) -> Iterator[str]:
    """A gateway in a thread of this process, with its schema cache loaded; yields its URL."""
    listener = _listen("127.0.0.1", port)
    ready = threading.Event()
    server = _Server(config, ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        if not ready.wait(_START_SECONDS):
            raise ConfigurationError(f"the gateway is not ready after {_START_SECONDS:.0f} s")
        yield _url(listener)
    finally:
        server.should_exit = True
        thread.join()


class _Server(uvicorn.Server):
    def __init__(self, config: GatewayConfig, on_ready: Callable[[], None]) -> None:
        self._app = create_app(config)
        self._on_ready = on_ready
        super().__init__(
            uvicorn.Config(
                self._app,
                http=_Protocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=1,
                h11_max_incomplete_event_size=_LONGEST_HEADERS_BYTES,
                backlog=_BACKLOG,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # The first load is waited for, a failing one is not: then calls are answered 503.
        await self._app.state.watch.first_attempt.wait()
        self._on_ready()


def _listen(host: str, port: int) -> socket.socket:
    try:
        loopback = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ConfigurationError(
            f"the local gateway serves development and tests and binds loopback only, not {host}: "
            "use 127.0.0.1"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only where the protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(f"port {port}: {error.strerror}: choose another") from error
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
