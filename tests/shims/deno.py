"""Shims as processes of the real Deno, as the runtime of Supabase's functions would run them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterator

SUPABASE = Path(__file__).parents[2] / "supabase"
FUNCTIONS = SUPABASE / "functions"
MISSING = "no deno here: make shims installs it"
_LISTENING = re.compile(r"Listening on (http://\S+?)/?( |$)")
_START_SECONDS = 60.0


def find_deno() -> Path | None:
    """That of the virtual environment, else that of PATH."""
    own = Path(sys.executable).with_name("deno")
    on_path = shutil.which("deno")
    return own if own.exists() else Path(on_path) if on_path else None


def run_deno(*arguments: object) -> subprocess.CompletedProcess[str]:
    deno = find_deno()
    assert deno is not None, MISSING
    command = [str(deno), *map(str, arguments)]
    return subprocess.run(
        command, env=_environ(), capture_output=True, text=True, timeout=120, check=False
    )


@dataclass
class Shim:
    """One shim that listens; `output` is every line that it has written."""

    process: subprocess.Popen[str]
    url: str = ""
    output: list[str] = field(default_factory=list)
    _ready: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._ready.wait(_START_SECONDS)
        assert self.url, "\n".join(self.output)

    def poke(self, secret: str | None = None, **options: object) -> httpx.Response:
        headers = {} if secret is None else {"x-edge-function-secret": secret}
        options.setdefault("headers", headers)
        options.setdefault("method", "POST")
        return httpx.request(url=self.url, timeout=30, **options)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.output.append(line.rstrip())
                if not self.url and (found := _LISTENING.search(line)):
                    self.url = found[1]
                    self._ready.set()
        self._ready.set()


@contextlib.contextmanager
def running_shim(script: Path, **variables: str) -> Iterator[Shim]:
    """With no more rights than a network and an environment."""
    deno = find_deno()
    assert deno is not None, MISSING
    process = subprocess.Popen(
        [deno, "run", "--no-prompt", "--cached-only", "--allow-net", "--allow-env", str(script)],
        env={**_environ(), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        shim = Shim(process)
        yield shim
    finally:
        process.kill()
        process.wait()
    shim.stop()


def _environ() -> dict[str, str]:
    ours = ("FAIRLEASE_", "EDGE_FUNCTION_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return {
        **kept,
        "DENO_SERVE_ADDRESS": "tcp:127.0.0.1:0",
        "DENO_NO_UPDATE_CHECK": "1",
        "NO_COLOR": "1",
    }
