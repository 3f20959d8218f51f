"""Makes the files of a new Postgres cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlease.local.accounts import handed_over, readable_by
from fairlease.local.children import LET_FINISH, Child, Command

if TYPE_CHECKING:
    from pathlib import Path

    from fairlease.local.accounts import Account
    from fairlease.local.data_folder import DataFolder

# It takes a second.
_PATIENCE_SECONDS = 20.0
# The builtin C.UTF-8, which no operating system can change under an index, came with 17; settings
# can be given since 16.
_BUILTIN_LOCALE_SINCE = 17
_SETTINGS_SINCE = 16


def initdb(
    programs: Path, major: int, folder: DataFolder, account: Account | None, superuser: str
) -> bool:
    """Whether it worked; what it said is in the folder's log.

    Interrupted, it is waited for and not killed, also when its owner is: its servers would leave
    shared memory behind.
    """
    fresh = folder.fresh_cluster(account)
    with (
        handed_over(fresh, account) as (name, inherited),
        readable_by(account, folder.password()) as password,
        folder.log.open("wb") as log,
    ):
        child = Child(
            Command(
                programs / "initdb",
                ("-D", name, "-U", superuser, *_options(major)),
                account=account,
                on_owner_death=LET_FINISH,
                stdin=password,
                output=log,
                inherited=(folder.lock_descriptor, *inherited),
            )
        )
        try:
            child.start()
            status = child.wait()
        finally:
            child.stop(LET_FINISH, _PATIENCE_SECONDS)
    if status != 0:
        return False
    fresh.rename(folder.cluster)
    return True


def _options(major: int) -> tuple[str, ...]:
    locale = ["--locale=C.UTF-8"]
    if major >= _BUILTIN_LOCALE_SINCE:
        locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    settings = ["--set=dynamic_shared_memory_type=mmap"] if major >= _SETTINGS_SINCE else []
    login = ("--auth=scram-sha-256", "--pwfile=/dev/stdin")
    return ("--encoding=UTF8", *locale, *settings, *login, "--no-sync", "--no-instructions")
