"""Starts worker processes, reads what they say, kills them; none outlives its test."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crash.worker_process import Orders

SCRIPT = Path(__file__).with_name("worker_process.py")
TESTS = SCRIPT.parents[1]
PATIENCE_SECONDS = 30.0


@dataclass
class WorkerProcess:
    """One process; `told` is everything that was read of it so far."""

    process: subprocess.Popen[str]
    told: list[dict[str, Any]] = field(default_factory=list)
    _lines: queue.Queue[dict[str, Any] | None] = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, event: str, **fields: Any) -> dict[str, Any]:
        """The first line of this event, and with these fields, that was not waited for before."""
        while (line := self._lines.get(timeout=PATIENCE_SECONDS)) is not None:
            self.told.append(line)
            if line["event"] == event and fields.items() <= line.items():
                return line
        raise AssertionError(f"the process ended and never said {event} {fields}: {self.told}")

    def send(self, signal_number: int) -> None:
        self.process.send_signal(signal_number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.process.wait(PATIENCE_SECONDS)
        self.read_all()

    def read_all(self) -> None:
        """Everything that it said until its end."""
        while (line := self._lines.get(timeout=PATIENCE_SECONDS)) is not None:
            self.told.append(line)
        self._lines.put(None)

    def all_of(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.told if line["event"] == event]

    def ids_of(self, event: str) -> list[int]:
        return [line["id"] for line in self.all_of(event)]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)


@contextlib.contextmanager
def working(orders: Orders) -> Iterator[WorkerProcess]:
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), json.dumps(asdict(orders))],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )
    try:
        yield WorkerProcess(process)
    finally:
        process.kill()
        process.wait(PATIENCE_SECONDS)
        assert process.stdout is not None
        process.stdout.close()
