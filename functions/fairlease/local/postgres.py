"""A real Postgres as a child process: no Docker, no installation, nothing left behind."""

from __future__ import annotations

import signal
import socket
import tempfile
import time
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from fairlease.errors import ConfigurationError
from fairlease.local import binaries as programs
from fairlease.local.accounts import Account, handed_over, unprivileged_account
from fairlease.local.children import Child, Command
from fairlease.local.data_folder import DataFolder
from fairlease.local.initdb import initdb
from fairlease.local.socket_folder import SocketFolder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

# As on Supabase, where `postgres` is no superuser.
SUPERUSER = "supabase_admin"

_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.01
_PORT_ATTEMPTS = 5
# Shared memory as files of the data folder: they go where it goes, and a container's small /dev/shm
# is no limit.
_NOTHING_OUTSIDE = {"dynamic_shared_memory_type": "mmap"}
_LOG_TAIL_LINES = 3


class LocalPostgres:
    """A server on 127.0.0.1 and on a Unix socket, with a password.

    `data` None: a temporary folder in `temporary_parent` that `stop` removes. `port` None: a free
    one. `settings` are server settings by name. Works as root (the server runs as `postgres` or
    `nobody`) and as anybody else. On Linux the server stops within moments of its owner's death.
    """

    def __init__(
        self,
        data: Path | None = None,
        settings: Mapping[str, str] | None = None,
        binaries: Path | None = None,
        port: int | None = None,
        temporary_parent: Path | None = None,
    ) -> None:
        self._data = data or temporary_parent or tempfile.gettempdir()
        self._folder = DataFolder(data, temporary_parent)
        self._settings = dict(settings or {})
        self._binaries = binaries
        self._asked_port = port
        self._port = 0
        self._server: Child | None = None
        self._sockets: SocketFolder | None = None
        self.password = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return self._port

    @property
    def socket_folder(self) -> Path:
        if self._sockets is None:
            raise RuntimeError("the server was not started")
        return self._sockets.path

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        """All login roles made by `bootstrap` share the password."""
        return (
            f"postgresql://{quote(user, safe='')}:{self.password}"
            f"@127.0.0.1:{self._port}/{quote(database, safe='')}"
        )

    def start(self) -> None:
        """Return once the server accepts connections. Raises ConfigurationError."""
        try:
            self._folder.open()
            self._start()
        except OSError as error:
            self.stop()
            raise ConfigurationError(
                f"cannot use the data folder {self._data}: {error.strerror}: "
                "change its owner or name another"
            ) from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Disconnect clients, write everything out, end; harmless when not running."""
        if self._server is not None:
            self._server.stop(signal.SIGINT, _STOP_SECONDS)
            self._server = None
        if self._sockets is not None:
            self._sockets.close()
            self._sockets = None
        self._folder.close()

    def wait(self) -> None:
        """Until the server ends, however it ends."""
        server = self._server
        if server is not None:
            server.wait()

    def _start(self) -> None:
        folder = self._binaries or programs.bundled()
        account = unprivileged_account()
        if account is not None:
            folder = programs.reachable(folder)
        major = programs.version(folder).split(".")[0]
        self.password = self._folder.password()
        made_by = self._folder.cluster_version()
        if made_by is None:
            if not initdb(folder, int(major), self._folder, account, SUPERUSER):
                raise ConfigurationError(f"initdb failed: {self._log_tail()}")
        elif made_by != major:
            raise ConfigurationError(
                f"the data folder {self._folder.path} was made by Postgres {made_by}, these "
                f"programs are {major}: name another folder, or remove it to start afresh"
            )
        elif account is not None:
            owner = self._folder.cluster.stat()
            account = Account(owner.st_uid, owner.st_gid)
        self._sockets = SocketFolder(account)
        self._sockets.open()
        self._launch(folder / "postgres", account)

    def _launch(self, program: Path, account: Account | None) -> None:
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._port = available_port(self._asked_port)
            self._spawn(program, account)
            if self._ready():
                return
            # Somebody took the free port between our look and the server's.
            lost_race = "Address already in use" in self._folder.log.read_text(errors="replace")
            if self._asked_port is not None or not lost_race or attempt == _PORT_ATTEMPTS:
                raise ConfigurationError(f"Postgres did not start: {self._log_tail()}")

    def _spawn(self, program: Path, account: Account | None) -> None:
        settings = {
            **_NOTHING_OUTSIDE,
            "listen_addresses": "127.0.0.1",
            "port": str(self._port),
            "unix_socket_directories": str(self.socket_folder),
            "max_connections": "200",
            "timezone": "UTC",
            **self._settings,
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        with (
            handed_over(self._folder.cluster, account) as (name, inherited),
            self._folder.log.open("wb") as log,
        ):
            self._server = Child(
                Command(
                    program,
                    ("-D", name, *options),
                    account=account,
                    on_owner_death=signal.SIGQUIT,
                    output=log,
                    inherited=(*self._locks(), *inherited),
                )
            )
            self._server.start()

    def _locks(self) -> tuple[int, ...]:
        """Held by the server as well: while it lives, nobody takes its folders for forgotten."""
        sockets = [self._sockets.lock_descriptor] if self._sockets else []
        return (self._folder.lock_descriptor, *sockets)

    def _ready(self) -> bool:
        """Wait for the server's own word; False if it ended."""
        if self._server is None:
            return False
        deadline = time.monotonic() + _START_SECONDS  # noqa: TID251 - waits for a real process
        while self._server.wait(_POLL_SECONDS) is None:
            if self._folder.is_ready(self._server.pid):
                return True
            if time.monotonic() > deadline:  # noqa: TID251
                raise ConfigurationError(
                    f"Postgres is not ready after {_START_SECONDS:.0f} s: {self._log_tail()}"
                )
        return False

    def _log_tail(self) -> str:
        lines = self._folder.log.read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-_LOG_TAIL_LINES:])


def available_port(asked: int | None) -> int:
    """The port itself; a free one for None and 0. Raises ConfigurationError for a taken one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", asked or 0))
        except OSError as error:
            raise ConfigurationError(
                f"port {asked} is not available ({error.strerror}): stop what uses it or ask for "
                "another"
            ) from error
        return int(probe.getsockname()[1])
