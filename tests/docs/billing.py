"""The API of the page: by customer, what a handler of it may meet."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Customers whose charge is answered otherwise than with 201.
STATUSES = {"nobody": 404, "busy": 429, "slow": 202, "down": 503}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(STATUSES.get(body["customer"], 201))
        self.send_header("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@contextlib.contextmanager
def billing_api() -> Iterator[str]:
    """Yields its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
