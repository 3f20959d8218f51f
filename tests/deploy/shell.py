"""A person's terminal: what one block exports and where it goes, the next one has."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_SECONDS = 180
_READY = "READY "


class BlockFailed(AssertionError):
    """A command of a block failed."""


@dataclass
class Service:
    """A program that serves `url` and writes `lines`."""

    process: subprocess.Popen[str]
    url: str = ""
    lines: list[str] = field(default_factory=list)
    _ready: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()
        self._ready.wait(_SECONDS)
        if not self.url:
            raise BlockFailed("\n".join(["it does not serve:", *self.lines]))

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if line.startswith(_READY):
                self.url = line.removeprefix(_READY).strip()
                self._ready.set()
        self._ready.set()


@dataclass
class Shell:
    """Begins in `folder` with `environment`; `state` is a folder for what it remembers."""

    folder: Path
    state: Path
    environment: Mapping[str, str]

    def run(self, text: str) -> str:
        """What it writes, errors included. Raises BlockFailed."""
        after = f"export -p > {self._exports}\npwd > {self._place}\n"
        done = subprocess.run(
            ["bash", "-c", f"{self._before()}{text}\n{after}"],
            env=dict(self.environment),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise BlockFailed(f"{text}\nended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    @contextlib.contextmanager
    def serving(self, command: str, without: str) -> Iterator[Service]:
        """Beside the terminal, and without the variable `without`."""
        process = subprocess.Popen(
            ["bash", "-c", f"{self._before()}unset {without}\nexec {command}"],
            env={**self.environment, "PYTHONUNBUFFERED": "1"},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield Service(process)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    @property
    def _exports(self) -> Path:
        return self.state / "exports"

    @property
    def _place(self) -> Path:
        return self.state / "place"

    def _before(self) -> str:
        again = f'source {self._exports}\ncd "$(cat {self._place})"\n'
        return f"set -euo pipefail\n{again if self._exports.exists() else ''}"
