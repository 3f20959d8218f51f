"""Where a server's Unix socket is: a short path, whatever the length of the data folder's."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from fairlease.local.accounts import open_to_all

if TYPE_CHECKING:
    from fairlease.local.accounts import Account

_PREFIX = "fairlease-socket-"
# A socket's path may have 103 bytes on macOS, 107 on Linux; `/.s.PGSQL.65535.lock` comes after it.
_LONGEST_FOLDER = 80
_LAST_RESORT = Path("/tmp")  # noqa: S108 - mkdtemp makes a private folder in it


class SocketFolder:
    """Opened: it exists and belongs to the server's user.

    As with the data folder, a lock tells whether anybody lives: owner and server hold it, and the
    next folder that is made removes those that were left by killed ones.
    """

    def __init__(self, account: Account | None) -> None:
        self._account = account
        self._path: Path | None = None
        self._lock: int | None = None

    @property
    def path(self) -> Path:
        if self._path is None:
            raise RuntimeError("the socket folder is not open")
        return self._path

    @property
    def lock_descriptor(self) -> int:
        if self._lock is None:
            raise RuntimeError("the socket folder is not open")
        return self._lock

    def open(self) -> None:
        parent = _parent(self._account)
        self._sweep(parent)
        while self._lock is None:
            self._path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            # Between the two lines somebody else's sweep may have taken it for a forgotten one.
            self._lock = _locked(self._path)
        if self._account is not None:
            os.chown(self.path, self._account.uid, self._account.gid)

    def close(self) -> None:
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            self._path = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _sweep(self, parent: Path) -> None:
        ours = {os.geteuid(), *([self._account.uid] if self._account else [])}
        for folder in parent.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                if folder.lstat().st_uid not in ours:
                    continue
                lock = _locked(folder)
                if lock is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the lock; None where somebody else has it, or removed the folder."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), folder.lstat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None


def _parent(account: Account | None) -> Path:
    chosen = Path(tempfile.gettempdir())
    length = len(os.fsencode(chosen / _PREFIX)) + 8
    if length > _LONGEST_FOLDER or (account is not None and not open_to_all(chosen)):
        return _LAST_RESORT
    return chosen
