"""Somebody in the place of the host, who answers as told and keeps what came."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    url: str = ""
    status: int = 202
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    body: bytes = b'{"status": "accepted"}'
    delay_seconds: float = 0.0
    received: list[Received] = field(default_factory=list)


@contextlib.contextmanager
def receiver() -> Iterator[Receiver]:
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.received.append(Received(self.path, headers, body))
            time.sleep(state.delay_seconds)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.send_response(state.status)
                for name, value in {**state.headers, "content-length": len(state.body)}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(state.body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
