"""How an isolate tells the main process that it serves; its death is told by the pipe's end."""

from __future__ import annotations

import multiprocessing
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection


def load_and_tell(load: Callable[[], Any], pipe: Connection) -> Any:
    """In the isolate: `load`; what has connected by now will be served."""
    app = load()
    with pipe:
        pipe.send_bytes(b"1")
    return app


class Arrival:
    """In the main process: of one isolate. `pipe` is what it is given."""

    def __init__(self) -> None:
        self._here, self.pipe = multiprocessing.Pipe(duplex=False)
        self._heard = threading.Event()
        self.served = False

    def listen(self) -> None:
        """To be called once the isolate has been started, and has its end of the pipe."""
        self.pipe.close()
        threading.Thread(target=self._listen, daemon=True).start()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it came to serve; at once where that is known."""
        self._heard.wait(seconds)
        return self.served

    def _listen(self) -> None:
        with self._here:
            try:
                self.served = bool(self._here.recv_bytes())
            except (EOFError, OSError):
                self.served = False
            finally:
                self._heard.set()
