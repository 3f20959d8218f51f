"""Real `fairlease serve` processes for tests, and proof that nothing of them is left."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECRET = "s3cret"
PATIENCE_SECONDS = 30.0
# Says when it starts, when it is told to stop and when it has ended, with its process.
NAP = """
import asyncio, os
def say(what): print(what, os.getpid(), flush=True)
async def run(ctx):
    say("started")
    await ctx.stopping.wait()
    say("told")
    await asyncio.sleep(0.2)
    say("ended")
"""


def write_task(root: Path, name: str, code: str) -> None:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "function.toml").write_text(f'name = "{name}"\nkind = "task"\n')
    (folder / "task.py").write_text(code)


def serve_command(functions: Path, *options: str) -> list[str]:
    fairlease = [sys.executable, "-c", "from fairlease.cli.main import run; run()", "serve"]
    return [*fairlease, "--functions", str(functions), "--port", "0", *options]


def host_environ(**variables: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FAIRLEASE_", "SUPABASE_"))}
    return {**kept, "EDGE_FUNCTION_SECRET": f"other,{SECRET}", **variables}


@dataclass
class HostProcess:
    """One `fairlease serve`; its lines of stdout come through `line()` in order.

    What it logs is in the file `log`, where it was given one.
    """

    process: subprocess.Popen[str]
    lines: queue.Queue[str] = field(default_factory=queue.Queue)
    url: str = ""
    log: Path | None = None

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()
        self.url = self.line().removeprefix("READY ")

    def line(self) -> str:
        line = self.lines.get(timeout=PATIENCE_SECONDS)
        assert line, "the host's output ended"
        return line

    def poke(self, name: str = "nap", **options: object) -> httpx.Response:
        options.setdefault("headers", {"x-edge-function-secret": SECRET})
        return httpx.post(f"{self.url}/functions/v1/{name}", timeout=PATIENCE_SECONDS, **options)

    def started(self, name: str = "nap") -> int:
        """Poke, and the process id of the worker that runs it."""
        assert self.poke(name).json()["status"] == "accepted"
        what, pid = self.line().split()
        assert what == "started"
        return int(pid)

    def wait(self) -> int:
        return self.process.wait(PATIENCE_SECONDS)

    def said(self) -> str:
        assert self.log is not None
        return self.log.read_text()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put("")


@contextlib.contextmanager
def running_host(
    functions: Path, *options: str, log: Path | None = None, **variables: str
) -> Iterator[HostProcess]:
    """Killed at the end, with all its isolates."""
    with contextlib.nullcontext() if log is None else log.open("a") as stderr:
        process = subprocess.Popen(
            serve_command(functions, *options),
            env=host_environ(**variables),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
    try:
        yield HostProcess(process, log=log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_SECONDS)
        assert process.stdout is not None
        process.stdout.close()


def half_a_poke(host: HostProcess, name: str) -> socket.socket:
    """Its isolate waits for the second byte of the body."""
    address, port = host.url.removeprefix("http://").split(":")
    connection = socket.create_connection((address, int(port)), timeout=PATIENCE_SECONDS)
    connection.sendall(
        f"POST /functions/v1/{name} HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n"
        f"x-edge-function-secret: {SECRET}\r\n\r\nx".encode()
    )
    return connection


def fails_to_start(
    functions: Path, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        serve_command(functions, *options),
        env=host_environ(**variables),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_SECONDS,
        check=False,
    )


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def eventually(holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
    """Whether `holds` comes true in time; for other processes, which have no clock of ours."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(httpx.TransportError):
            if holds():
                return True
        time.sleep(0.05)
    return False
