"""Children that serve: each says `READY <url>` on its output once it does."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from fairlease.errors import ConfigurationError
from fairlease.local.children import Child, Command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_READY = "READY "
_READY_SECONDS = 60.0
_PATIENCE_AFTER_END_SECONDS = 2.0
# What the command line puts before its error.
_ERROR_PREFIX = "fairlease: "


class Service:
    """One Python program with a URL. Whatever else it writes goes to `say`, line by line.

    `on_exit` is called from a thread when it ends without having been stopped.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        say: Callable[[str], None],
        on_exit: Callable[[str], None] = lambda _name: None,
    ) -> None:
        self.name = name
        self.url = ""
        self._arguments = arguments
        # Lines are to be passed on when they are written.
        self._environment = {**environment, "PYTHONUNBUFFERED": "1"}
        self._say = say
        self._on_exit = on_exit
        self._child: Child | None = None
        self._settled = threading.Event()
        self._stopping = False
        self._last_line = ""

    def start(self) -> None:
        """`launch` and `wait_until_ready`."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Return once the process exists, so that several can get ready at the same time."""
        read, write = os.pipe()
        try:
            self._child = Child(
                Command(
                    Path(sys.executable),
                    self._arguments,
                    folder=Path.cwd(),
                    environment=self._environment,
                    output=write,
                )
            )
            self._child.start()
        finally:
            os.close(write)
            threading.Thread(target=self._listen, args=(read,), daemon=True).start()

    def wait_until_ready(self) -> None:
        """Raises ConfigurationError with its last words if it does not serve."""
        settled = self._settled.wait(_READY_SECONDS)
        if not self.url:
            self.stop(grace_seconds=0.0)
            why = self._last_line.removeprefix(_ERROR_PREFIX) or "it said nothing"
            late = "" if settled else f" within {_READY_SECONDS:.0f} s"
            raise ConfigurationError(f"the {self.name} did not start{late}: {why}")

    def wait(self, timeout_seconds: float | None = None) -> int | None:
        """Exit status, or None while it runs."""
        return self._child.wait(timeout_seconds) if self._child is not None else None

    def ask_to_stop(self) -> None:
        """Without waiting for it, so that several can stop at the same time."""
        self._stopping = True
        if self._child is not None:
            self._child.send(signal.SIGTERM)

    def stop(self, grace_seconds: float = 10.0) -> None:
        self._stopping = True
        if self._child is not None:
            self._child.stop(grace_seconds=grace_seconds)

    def _listen(self, descriptor: int) -> None:
        with os.fdopen(descriptor, errors="replace") as stream:
            for line in stream:
                text = line.rstrip()
                if text.startswith(_READY) and not self.url:
                    self.url = text.removeprefix(_READY)
                    self._settled.set()
                elif text:
                    self._last_line = text
                    self._say(f"{self.name}: {text}")
        self._settled.set()
        if not self._stopping:
            self._on_exit(self.name)
