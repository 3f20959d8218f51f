"""Owner processes to be killed, and proof that nothing of theirs is left."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FUNCTIONS = Path(__file__).parents[2] / "functions"

OWNER = """
import pathlib, signal, sys
from fairlease.local.postgres import LocalPostgres
from fairlease.local.bootstrap import bootstrap
data = pathlib.Path(sys.argv[1]) if sys.argv[1] else None
print("started", flush=True)
with LocalPostgres(data, settings={"fsync": "off"}) as server:
    bootstrap(server)
    print(server.url(), flush=True)
    signal.pause()
"""


@contextlib.contextmanager
def running_owner(data: Path | None, temporary: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has said `started`, next says its server's URL and then waits."""
    environment = {**os.environ, "PYTHONPATH": str(FUNCTIONS), "TMPDIR": str(temporary)}
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(data or "")],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as owner:
        try:
            assert next_line(owner) == "started"
            yield owner
        finally:
            owner.kill()


def next_line(owner: subprocess.Popen[str]) -> str:
    assert owner.stdout is not None
    return owner.stdout.readline().strip()


def processes_mentioning(marker: str) -> list[int]:
    """Processes, zombies aside, with `marker` in their environment or arguments."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                text = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
                if marker.encode() in text:
                    found.append(int(folder.name))
    return found


def descendants(pid: int) -> list[int]:
    """Children of children included: the server's own do not keep their environment."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = list(children.get(pid, []))
    for child in found:
        found.extend(children.get(child, []))
    return found


def wait_until_gone(pids: list[int], timeout_seconds: float = 10.0) -> None:
    """Wait for the kernel's word that each has ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            try:
                ended, _, _ = select.select([descriptor], [], [], timeout_seconds)
                assert ended, f"process {pid} is still there"
            finally:
                os.close(descriptor)
