"""Runs as a child, by path: drops root, ties its life to its parent's, becomes another program.

A process of its own, because code between fork and exec is unsafe once the parent has threads.
Standard library only: it is started with `-I -S`.

Arguments: parent's pid; signal number on the parent's death, or `group`; uid or `-`; gid or `-`;
then the command. With `group` it stays, as the leader of the command's process group, and kills
the whole group when the parent dies: for a program with children of its own.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_PR_SET_PDEATHSIG = 1
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def launch(parent: int, on_death: str, uid: str, gid: str, command: list[str]) -> None:
    if uid != "-":
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))
    if on_death != "group":
        _die_with(parent, int(on_death))
        os.execv(command[0], command)  # noqa: S606 - the command is fairlease's own
    keeper = os.getpid()
    signal.signal(signal.SIGUSR1, _kill_group)
    _die_with(parent, signal.SIGUSR1)
    # Held back until there is somebody to forward them to.
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        _die_with(keeper, signal.SIGKILL)
        os.execv(command[0], command)  # noqa: S606 - as above
    _keep(child)


def _die_with(parent: int, death_signal: int) -> None:
    if sys.platform == "linux":
        # After setuid, which clears it.
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # The parent may have died before the request.
    if os.getppid() != parent:
        os._exit(1)


def _keep(child: int) -> None:
    """Forward what a stop sends; end as the child ended."""

    def forward(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in _FORWARDED:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _kill_group(_number: int, _frame: FrameType | None) -> None:
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    launch(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
