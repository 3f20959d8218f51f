"""Runs as a child, by path: drops root, asks to die with its parent, becomes another program.

A process of its own, because code between fork and exec is unsafe once the parent has threads.
Standard library only: it is started with `-I -S`.

Arguments: parent's pid, signal number, uid or `-`, gid or `-`, then the command.
"""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1


def become(parent: int, death_signal: int, uid: str, gid: str, command: list[str]) -> None:
    if uid != "-":
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))
    if sys.platform == "linux":
        # After setuid, which clears it.
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # The parent may have died before the request.
    if os.getppid() != parent:
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 - the command is fairlease's own


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5:])
