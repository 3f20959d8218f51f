"""Running a child as another user, without opening anything of ours to everybody."""

from __future__ import annotations

import contextlib
import os
import pwd
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from fairlease.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Account:
    """The unprivileged user a child runs as."""

    uid: int
    gid: int


def unprivileged_account() -> Account | None:
    """Whom to run the server as: Postgres refuses root. None: as ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(entry.pw_uid, entry.pw_gid)
    raise ConfigurationError(
        "Postgres refuses to run as root, and no user postgres or nobody exists"
    )


def open_to_all(folder: Path) -> bool:
    """Whether any user can walk down to the folder."""
    folder = folder.resolve()
    return all(step.stat().st_mode & 0o001 for step in (folder, *folder.parents))


@contextlib.contextmanager
def handed_over(folder: Path, account: Account | None) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The folder's name for a child, and the descriptors that the name needs.

    Another user may not be able to walk down to the folder, and opening its parents would expose
    what else is in them. The kernel's link to an open folder needs no walk.
    """
    if account is None or not Path("/proc/self/fd").exists():
        yield str(folder), ()
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}", (descriptor,)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def readable_by(account: Account | None, text: str) -> Iterator[IO[bytes]]:
    """A file without a name that the child reads as its standard input."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        if account is not None:
            os.fchown(file.fileno(), account.uid, account.gid)
        yield file
