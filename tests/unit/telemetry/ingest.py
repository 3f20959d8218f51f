"""A server that takes what the SDK sends, over real HTTP, and keeps it."""

from __future__ import annotations

import gzip
import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_SECONDS = 30.0


@dataclass
class Ingest:
    """`items` are (type, payload) in the order of their arrival; `bodies` are the raw envelopes."""

    dsn: str = ""
    items: list[tuple[str, Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def of_type(self, kind: str) -> list[Any]:
        return [payload for found, payload in self.items if found == kind]

    @property
    def events(self) -> list[Any]:
        return self.of_type("event")

    def wait_for(self, holds: Callable[[], bool]) -> bool:
        """Whether it comes true in time; for a process whose SDK cannot be flushed from here."""
        return comes_true(holds)

    def take(self, body: bytes) -> None:
        self.bodies.append(body)
        lines = iter(body.split(b"\n"))
        next(lines)
        for header in lines:
            if header:
                self.items.append((json.loads(header)["type"], json.loads(next(lines))))


@contextmanager
def ingest() -> Iterator[Ingest]:
    kept = Ingest()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            kept.take(body)
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            return

    with serving(Handler) as port:
        kept.dsn = f"http://public@127.0.0.1:{port}/1"
        yield kept


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Yields the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def comes_true(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False
