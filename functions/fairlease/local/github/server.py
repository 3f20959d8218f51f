"""Serve the app with Granian in this process, on loopback, until told to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from typing import TYPE_CHECKING

from granian.constants import Interfaces
from granian.server.embed import Server

if TYPE_CHECKING:
    from starlette.applications import Starlette

LOOPBACK = "127.0.0.1"


def reserve(port: int) -> socket.socket:
    """A bound socket that holds the port (0: any free one) while Granian listens beside it."""
    if port:
        # Two servers that both share the port would each answer half of the requests.
        with socket.create_server((LOOPBACK, port), reuse_port=False):
            pass
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind((LOOPBACK, port))
    return held


async def serve(app: Starlette, port: int, *, until_stdin_closes: bool) -> None:
    """Print `READY <url>` when the first request can be answered; return after SIGTERM or SIGINT.

    With `until_stdin_closes` the end of the parent is the end of the server. Raises `OSError`
    where the port is taken.
    """
    with reserve(port) as held:
        port = held.getsockname()[1]
        server = Server(
            app, LOOPBACK, port, interface=Interfaces.ASGINL, log_enabled=False, websockets=False
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)
        if until_stdin_closes:
            _stop_when_stdin_closes(loop, server)
        serving = asyncio.ensure_future(server.serve())
        await _accepting(port, serving)
        sys.stdout.write(f"READY http://{LOOPBACK}:{port}\n")
        sys.stdout.flush()
        await serving


async def _accepting(port: int, serving: asyncio.Future[None]) -> None:
    while not serving.done():
        try:
            _, writer = await asyncio.open_connection(LOOPBACK, port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return


def _stop_when_stdin_closes(loop: asyncio.AbstractEventLoop, server: Server) -> None:
    def watch() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(server.stop)

    threading.Thread(target=watch, name="stdin-watch", daemon=True).start()
