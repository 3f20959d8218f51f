"""The folder that a local Postgres lives in: its lock, its password, its cluster, its log.

`lock` is held (flock) by the owner and, inherited, by the server: while either lives nobody else
starts on the data, and once both are gone nothing needs cleaning before the next start.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fairlease.errors import ConfigurationError

if TYPE_CHECKING:
    from fairlease.local.accounts import Account

# A server whose owner was killed needs a moment to notice and stop.
_LOCK_PATIENCE_SECONDS = 5.0
_LOCK_RETRY_SECONDS = 0.05
# Of postmaster.pid.
_STATUS_LINE = 8
_TEMPORARY_PREFIX = "fairlease-postgres-"


class DataFolder:
    """Opened: the lock is ours. Raises OSError, and ConfigurationError where it is in use."""

    def __init__(self, path: Path | None, parent: Path | None = None) -> None:
        self.temporary = path is None
        self._parent = parent or Path(tempfile.gettempdir())
        self._path = path.absolute() if path else None
        self._lock: int | None = None

    @property
    def path(self) -> Path:
        if self._path is None:
            raise RuntimeError("the data folder is not open")
        return self._path

    @property
    def is_open(self) -> bool:
        return self._lock is not None

    @property
    def cluster(self) -> Path:
        return self.path / "cluster"

    @property
    def log(self) -> Path:
        return self.path / "server.log"

    @property
    def lock_descriptor(self) -> int:
        if self._lock is None:
            raise RuntimeError("the data folder is not open")
        return self._lock

    def open(self) -> None:
        if self.temporary:
            sweep_abandoned(self._parent)
            self._path = Path(tempfile.mkdtemp(prefix=_TEMPORARY_PREFIX, dir=self._parent))
        try:
            _refuse_a_cluster(self.path)
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.path)
            self._remove_stale_pid_file()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go; a temporary folder is removed."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        if self.temporary and self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            self._path = None

    def fresh_cluster(self, account: Account | None) -> Path:
        """An empty folder for initdb, to be renamed to `cluster` once complete."""
        fresh = self.path / "cluster.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        if account is not None:
            os.chown(fresh, account.uid, account.gid)
        return fresh

    def cluster_version(self) -> str | None:
        """Major version of the data, None where there is none yet."""
        try:
            return (self.cluster / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            return None

    def is_ready(self, pid: int) -> bool:
        """Whether the server `pid` says of itself that it accepts connections."""
        with contextlib.suppress(FileNotFoundError):
            lines = (self.cluster / "postmaster.pid").read_text().splitlines()
            return len(lines) >= _STATUS_LINE and (lines[0], lines[_STATUS_LINE - 1].strip()) == (
                str(pid),
                "ready",
            )
        return False

    def password(self) -> str:
        """Made once, readable by the owner alone: other users of the machine share loopback."""
        file = self.path / "password"
        with contextlib.suppress(FileNotFoundError):
            return file.read_text()
        fresh = file.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(secrets.token_urlsafe(24))
        fresh.rename(file)
        return file.read_text()

    def _remove_stale_pid_file(self) -> None:
        """Postgres believes a pid file whose number was reused by another of our processes."""
        file = self.cluster / "postmaster.pid"
        try:
            pid = int(file.read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cwd").samefile(self.cluster):
                raise _in_use(self.path)
        if Path("/proc/self/cwd").exists():
            file.unlink()


def sweep_abandoned(parent: Path) -> None:
    """Remove temporary folders whose owner was killed."""
    for folder in parent.glob(f"{_TEMPORARY_PREFIX}*"):
        with contextlib.suppress(OSError):
            # Without a cluster it may be one that is only being made.
            if folder.stat().st_uid != os.geteuid() or not any(folder.glob("cluster*")):
                continue
            abandoned = DataFolder(folder)
            abandoned._lock = _lock_at_once(folder)  # noqa: SLF001 - the same class
            abandoned.temporary = True
            abandoned.close()


def _refuse_a_cluster(path: Path) -> None:
    if (path / "PG_VERSION").exists():
        raise ConfigurationError(
            f"{path} is itself a Postgres cluster: name an empty folder, or its parent"
        )


def _locked(path: Path) -> int:
    deadline = time.monotonic() + _LOCK_PATIENCE_SECONDS  # noqa: TID251 - waits for real processes
    while True:
        try:
            return _lock_at_once(path)
        except BlockingIOError:
            if time.monotonic() > deadline:  # noqa: TID251
                raise _in_use(path) from None
            time.sleep(_LOCK_RETRY_SECONDS)


def _lock_at_once(path: Path) -> int:
    descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _in_use(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"the data folder {path} is in use by a live server: stop that one or name another folder"
    )
