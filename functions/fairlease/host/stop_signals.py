"""The event loop of a worker, which tells us of a stop and tells the server once."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

from granian import loops

if TYPE_CHECKING:
    from collections.abc import Callable

#: The name under which the server finds this loop.
LOOP = "fairlease"
_STOPS = frozenset({signal.SIGTERM, signal.SIGINT})


class StopSignalLoop(asyncio.SelectorEventLoop):
    """Calls `on_stop` at the first SIGTERM or SIGINT, then the server's own handler.

    Later ones reach nobody: Granian deadlocks, with the interpreter's lock held, when a second
    one comes while it reacts to the first (its main process and a terminal both send them).
    """

    def __init__(self) -> None:
        super().__init__()
        self.on_stop: Callable[[], None] | None = None
        self.stopped = False

    def add_signal_handler(self, sig: int, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        if sig in _STOPS:
            super().add_signal_handler(sig, self._first, callback, *args)
        else:
            super().add_signal_handler(sig, callback, *args)

    def _first(self, callback: Callable[..., Any], *args: Any) -> None:
        if self.stopped:
            return
        self.stopped = True
        try:
            if self.on_stop is not None:
                self.on_stop()
        finally:
            callback(*args)


@loops.register(LOOP)
def build() -> asyncio.AbstractEventLoop:
    loop = StopSignalLoop()
    asyncio.set_event_loop(loop)
    return loop
