"""The event loop of a worker, which tells us of a stop and tells the server once."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from granian import loops

if TYPE_CHECKING:
    from collections.abc import Callable

#: The name under which the server finds this loop.
LOOP = "fairlease"
_STOPS = frozenset({signal.SIGTERM, signal.SIGINT})
# A loop that has not heard of a stop after this is blocked: the server is told without it.
_PATIENCE_SECONDS = 1.0


class StopSignalLoop(asyncio.SelectorEventLoop):
    """Calls `on_stop` at the first SIGTERM or SIGINT, then the server's own handler.

    Later ones reach nobody: Granian deadlocks, with the interpreter's lock held, when a second
    one comes while it reacts to the first (its main process and a terminal both send them).

    The server accepts in threads of its own, also while a handler blocks this loop. It is then told
    from a thread, or it would take connections, which nobody answers, away from the successor.
    """

    def __init__(self) -> None:
        super().__init__()
        self.on_stop: Callable[[], None] | None = None
        self.stopped = False
        self._heard: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._telling = threading.Lock()
        self._told = False
        self._insisting: threading.Thread | None = None

    def add_signal_handler(self, sig: int, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        if sig not in _STOPS:
            super().add_signal_handler(sig, callback, *args)
            return

        def tell() -> None:
            self._tell(callback, *args)

        super().add_signal_handler(sig, self._first, tell)
        if self._insisting is None:
            self._insisting = threading.Thread(
                target=self._insist, name="stop-signals", daemon=True
            )
            self._insisting.start()
        # In place of asyncio's own, which does nothing: its loop is woken by the kernel all the
        # same. This one runs also while the loop is blocked, unless that is in C code.
        signal.signal(sig, lambda *_: self._heard.put(tell))

    def _first(self, tell: Callable[[], None]) -> None:
        if self.stopped:
            return
        self.stopped = True
        try:
            if self.on_stop is not None:
                self.on_stop()
        finally:
            tell()

    def _insist(self) -> None:
        tell = self._heard.get()
        time.sleep(_PATIENCE_SECONDS)
        # The loop may be closed by now: then its server has stopped.
        with contextlib.suppress(RuntimeError):
            tell()

    def _tell(self, callback: Callable[..., Any], *args: Any) -> None:
        with self._telling:
            if self._told:
                return
            self._told = True
        callback(*args)


@loops.register(LOOP)
def build() -> asyncio.AbstractEventLoop:
    loop = StopSignalLoop()
    asyncio.set_event_loop(loop)
    return loop
