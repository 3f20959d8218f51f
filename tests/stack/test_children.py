from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fairlease.local.children import Child, Command
from stack.owners import FUNCTIONS, descendants, wait_until_gone

SHELL = Path("/bin/sh")
# Says a line once it is up, which takes its child's existence.
FAMILY = "sleep 60 & echo ready; wait"
STUBBORN = "trap '' TERM; sleep 60 & echo ready; while true; do wait; done"


def started(script: str) -> tuple[Child, list[int]]:
    """A child that has said `ready`, and every process of it."""
    read, write = os.pipe()
    child = Child(Command(SHELL, ("-c", script), output=write))
    child.start()
    os.close(write)
    with os.fdopen(read) as stream:
        assert stream.readline() == "ready\n"
    return child, [child.pid, *descendants(child.pid)]


@pytest.mark.parametrize("script", [FAMILY, STUBBORN])
def test_stop_leaves_no_grandchild(script: str) -> None:
    child, family = started(script)
    assert len(family) >= 3
    child.stop(grace_seconds=0.2)
    wait_until_gone(family, timeout_seconds=0)
    assert child.wait(0) is not None


def test_child_that_ends_takes_its_children_along() -> None:
    child, family = started("sleep 60 & echo ready; exit 7")
    assert child.wait(10) == 7
    wait_until_gone(family)


@pytest.mark.parametrize("keep", [None, "SIGKILL"])
def test_exit_status_is_the_programs_own(keep: str | None) -> None:
    death = signal.Signals[keep] if keep else None
    child = Child(Command(SHELL, ("-c", "exit 3"), on_owner_death=death))
    child.start()
    assert child.wait(10) == 3


def test_stop_signal_reaches_the_program() -> None:
    with tempfile.TemporaryFile() as output:
        script = "trap 'echo stopped; exit 0' TERM; sleep 60 & wait"
        child = Child(Command(SHELL, ("-c", script), output=output))
        child.start()
        while len(descendants(child.pid)) < 2:
            assert child.wait(0.01) is None
        child.stop()
        output.seek(0)
        assert output.read() == b"stopped\n"


def test_stop_before_start_and_twice_is_harmless() -> None:
    child = Child(Command(SHELL, ("-c", "true")))
    child.stop()
    child.start()
    child.stop()
    child.stop()


OWNER = f"""
import pathlib, signal, sys
from fairlease.local.children import Child, Command
child = Child(Command(pathlib.Path("/bin/sh"), ("-c", {STUBBORN!r}), output=1))
child.start()
signal.pause()
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the kernel's death signal")
def test_killed_owner_takes_grandchildren_along() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        env={**os.environ, "PYTHONPATH": str(FUNCTIONS)},
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        family = descendants(owner.pid)
        assert len(family) >= 3
        owner.kill()
        wait_until_gone(family)


def test_a_stop_that_meets_the_end_is_not_waited_for_in_vain() -> None:
    for _ in range(20):
        child = Child(Command(Path(sys.executable), ("-S", "-c", "pass")))
        child.start()
        child.stop(grace_seconds=5.0)
        assert child.wait(0) is not None
