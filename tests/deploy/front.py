"""One URL for a project, as Supabase has it: Edge Functions below their path, else the API."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterator

_FUNCTIONS = "/functions/v1/"
_HOP_BY_HOP = {"connection", "host", "content-length", "transfer-encoding", "content-encoding"}


@dataclass
class Front:
    """`functions` are URLs of deployed ones; any other is answered 404."""

    api: str
    url: str = ""
    functions: dict[str, str] = field(default_factory=dict)

    def target(self, path: str) -> str | None:
        name = path.removeprefix(_FUNCTIONS)
        if name == path:
            return f"{self.api}{path}"
        return self.functions.get(name)


@contextlib.contextmanager
def front(api: str) -> Iterator[Front]:
    state = Front(api)

    class Handler(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            target = state.target(self.path)
            if target is None:
                return self._answer(httpx.Response(404, text="Requested function was not found"))
            kept = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_BY_HOP}
            with httpx.Client(trust_env=False, timeout=60) as client:
                return self._answer(
                    client.request(self.command, target, headers=kept, content=body)
                )

        do_GET = do_POST = do_HEAD = _pass_on  # noqa: N815 - as the library calls them

        def _answer(self, answer: httpx.Response) -> None:
            self.send_response(answer.status_code)
            for name, value in answer.headers.multi_items():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

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
