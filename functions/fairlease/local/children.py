"""Child processes that never outlive this one, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlease.local.accounts import Account

# The signal that is none: for a program that ends soon by itself.
LET_FINISH = 0

# Two seconds in all, for a process that the kernel cannot end at once.
_GROUP_LOOKS = 400
_GROUP_LOOK_SECONDS = 0.005
_LAUNCHER = Path(__file__).with_name("launcher.py")


@dataclass(frozen=True)
class Command:
    """What to run, and how it is to end.

    `on_owner_death` is the signal that the kernel (Linux) sends when this process dies; None kills
    the program together with the children it may have, LET_FINISH does nothing. `program` is an
    absolute path.
    """

    program: Path
    arguments: Sequence[str] = ()
    account: Account | None = None
    on_owner_death: int | None = None
    folder: Path = Path("/")
    environment: Mapping[str, str] | None = None
    stdin: IO[bytes] | int = subprocess.DEVNULL
    output: IO[bytes] | int = subprocess.DEVNULL
    inherited: Sequence[int] = ()


class Child:
    """One process in a session of its own, so that the terminal's Ctrl-C reaches only its owner.

    A thread starts it and waits for it: the kernel's promise to signal a child is tied to the
    thread that made it, which must therefore live as long as the child does.
    """

    def __init__(self, command: Command) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: OSError | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._exited = threading.Event()

    def start(self) -> None:
        """Return once the process exists; raise OSError if it cannot be made."""
        name = f"child {self._command.program.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the child was not started")
        return self._process.pid

    def wait(self, timeout_seconds: float | None = None) -> int | None:
        """Exit status (negative: minus the signal), or None while it runs."""
        if self._process is None or not self._exited.wait(timeout_seconds):
            return None
        return self._process.returncode

    def send(self, number: int) -> None:
        """Harmless when it has ended or was not started."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                # Not `send_signal`, which would reap a child that has just ended.
                os.kill(self._process.pid, number)

    def stop(self, first: int = signal.SIGTERM, grace_seconds: float = 10.0) -> None:
        """Ask, wait, then kill the whole group. Returns when nothing of it is left."""
        if self._thread is None or self._thread.ident is None:
            return
        # A start that was interrupted may still be under way.
        self._started.wait()
        if self._process is None:
            return
        self.send(first)
        try:
            if self.wait(grace_seconds) is not None:
                return
        finally:
            self._kill()

    def _kill(self) -> None:
        if self._process is not None and not self._exited.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._exited.wait()

    def _run(self) -> None:
        try:
            self._process = self._spawn()
        except OSError as error:
            self._failure = error
            return
        finally:
            self._started.set()
        # Stragglers go before the leader is reaped: until then its group id cannot be reused.
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        _wait_for_group(self._process.pid)
        self._exited.set()

    def _spawn(self) -> subprocess.Popen[bytes]:
        command = self._command
        account = command.account
        who = (str(account.uid), str(account.gid)) if account else ("-", "-")
        launch = (sys.executable, "-I", "-S", str(_LAUNCHER))
        death = "group" if command.on_owner_death is None else str(int(command.on_owner_death))
        how = (str(os.getpid()), death, *who)
        return subprocess.Popen(  # noqa: S603 - commands are fairlease's own
            (*launch, *how, str(command.program), *command.arguments),
            cwd=command.folder,
            env=command.environment,
            stdin=command.stdin,
            stdout=command.output,
            stderr=subprocess.STDOUT,
            pass_fds=tuple(command.inherited),
            start_new_session=True,
        )


def _wait_for_group(group: int) -> None:
    """Killed processes may write files for some moments yet."""
    for _ in range(_GROUP_LOOKS):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        except PermissionError:
            pass
        if not _has_more_than_zombies(group):
            return
        time.sleep(_GROUP_LOOK_SECONDS)


def _has_more_than_zombies(group: int) -> bool:
    """Zombies wait for whoever adopted them, which may take its time; they do nothing any more."""
    if not Path("/proc/self/stat").exists():
        return True
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, of_group = (process / "stat").read_text().rsplit(")", 1)[1].split()[:3]
            if int(of_group) == group and state not in "ZX":
                return True
    return False
