"""Children that serve: each says `READY <url>` on its output once it does."""

from __future__ import annotations

import os
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

    `on_exit` is called from a thread when it ends, however it ends.
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
        self._last_line = ""

    def start(self) -> None:
        """Return once it serves. Raises ConfigurationError with its last words if it does not."""
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
        settled = self._settled.wait(_READY_SECONDS)
        if not self.url:
            self.stop(grace_seconds=0.0)
            why = self._last_line.removeprefix(_ERROR_PREFIX) or "it said nothing"
            late = "" if settled else f" within {_READY_SECONDS:.0f} s"
            raise ConfigurationError(f"the {self.name} did not start{late}: {why}")

    def stop(self, grace_seconds: float = 10.0) -> None:
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
        self._on_exit(self.name)
