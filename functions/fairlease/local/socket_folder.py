"""Where a server's Unix socket is: a short path, whatever the length of the data folder's.

The path is remembered in a file beside the data, so that killed owners leave at most one folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from fairlease.local.binaries import open_to_all

if TYPE_CHECKING:
    from fairlease.local.children import Account

_PREFIX = "fairlease-socket-"
# A socket's path may have 103 bytes on macOS, 107 on Linux; `/.s.PGSQL.65535.lock` comes after it.
_LONGEST_FOLDER = 80
_LAST_RESORT = Path("/tmp")  # noqa: S108 - mkdtemp makes a private folder in it


def make(memory: Path, account: Account | None) -> Path:
    """The remembered folder if it is still ours, else a fresh one that belongs to the server."""
    uid = account.uid if account else os.geteuid()
    with contextlib.suppress(OSError):
        known = Path(memory.read_text())
        if _is_one(known) and known.is_dir() and known.stat().st_uid == uid:
            return known
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_parent(account)))
    if account is not None:
        os.chown(folder, account.uid, account.gid)
    memory.write_text(str(folder))
    return folder


def remove(memory: Path) -> None:
    with contextlib.suppress(OSError):
        folder = Path(memory.read_text())
        if _is_one(folder):
            shutil.rmtree(folder, ignore_errors=True)
        memory.unlink()


def _is_one(folder: Path) -> bool:
    """The file may have been written by somebody else: never remove what we did not make."""
    parents = (Path(tempfile.gettempdir()), _LAST_RESORT)
    return folder.parent in parents and folder.name.startswith(_PREFIX)


def _parent(account: Account | None) -> Path:
    chosen = Path(tempfile.gettempdir())
    length = len(os.fsencode(chosen / _PREFIX)) + 8
    if length > _LONGEST_FOLDER or (account is not None and not open_to_all(chosen)):
        return _LAST_RESORT
    return chosen
