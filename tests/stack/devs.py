"""Real `fairlease dev` processes, and proof that nothing of them is left."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stack.owners import FUNCTIONS, descendants, processes_mentioning, wait_until_gone

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator

RUN = "from fairlease.cli.main import run; run()"
PARTS = 6
HANDLERS = """
import fairlease
from pydantic import BaseModel

class Greeting(BaseModel):
    name: str

worker = fairlease.Worker()

@worker.handler("greet")
async def greet(args: Greeting, ctx: fairlease.Context) -> None:
    print("greeted", args.name, flush=True)
"""
MANIFEST = """
name = "greeter"
kind = "drain"
queues = ["greetings"]
"""


def write_function(folder: Path) -> Path:
    """A folder of functions with one drain, and that folder's path."""
    function = folder / "functions" / "greeter"
    function.mkdir(parents=True)
    (function / "function.toml").write_text(MANIFEST)
    (function / "handlers.py").write_text(HANDLERS)
    return function.parent


@dataclass
class Dev:
    """A running `fairlease dev`; its temporary files are in `temporary`."""

    process: subprocess.Popen[str]
    temporary: Path
    errors: Path

    def environment(self) -> dict[str, str]:
        """What it prints once everything runs."""
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline() for _ in range(PARTS)]
        assert all("=" in line for line in lines), self.errors.read_text()
        return dict(line.strip().split("=", 1) for line in lines)

    def processes(self) -> list[int]:
        return processes_mentioning(f"TMPDIR={self.temporary}")

    def ends_with(self, number: signal.Signals | None = None) -> int:
        """Send the signal, if any; the exit code, once nothing of it is left."""
        family = self.processes()
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(30)
        wait_until_gone([*family, *self.processes()])
        assert self.processes() == []
        return code

    def part(self, word: str) -> int:
        """The process of it with that word among its arguments."""
        for pid in descendants(self.process.pid):
            if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                return pid
        raise AssertionError(f"no process with the argument {word}")

    def last_words(self) -> str:
        return self.errors.read_text().splitlines()[-1]

    def says(self, text: str, timeout_seconds: float = 20.0) -> None:
        """Wait until it has said so on stderr."""
        deadline = time.monotonic() + timeout_seconds
        while text not in self.errors.read_text():
            assert time.monotonic() < deadline, self.errors.read_text()
            assert self.process.poll() is None, self.errors.read_text()
            time.sleep(0.02)


@contextlib.contextmanager
def running_dev(
    folder: Path, *options: str, functions: Path, errors: str = "stderr"
) -> Iterator[Dev]:
    """`folder` is its working folder; ports are free ones unless `options` say otherwise."""
    with tempfile.TemporaryDirectory(prefix="dev-", dir="/tmp") as temporary:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("FAIRLEASE_")}
        environment |= {"PYTHONPATH": str(FUNCTIONS), "TMPDIR": temporary}
        ports = ("--port", "0", "--host-port", "0")
        with (
            folder.joinpath(errors).open("w") as stream,
            subprocess.Popen(
                [sys.executable, "-c", RUN, "dev", *ports, "--functions", functions, *options],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
            ) as process,
        ):
            try:
                yield Dev(process, Path(temporary), folder / errors)
            finally:
                process.kill()
