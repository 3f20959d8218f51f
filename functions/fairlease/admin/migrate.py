"""Brings a database to this version's schema: every file in order, each once, each whole.

Each migration is one transaction that first takes one advisory lock and then looks at what has been
applied. So any number of these may run at once, die anywhere and be run again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from fairlease import resources
from fairlease.admin import migration_files as files
from fairlease.admin import migration_history as history
from fairlease.admin import pgmq_version
from fairlease.admin.connection import connect, one_line
from fairlease.errors import FairleaseError

if TYPE_CHECKING:
    from pathlib import Path

    from fairlease.admin.migration_files import Migration

# The files take the same one, for who runs them with psql.
_LOCK = (
    "select pg_catalog.pg_advisory_xact_lock("
    "pg_catalog.hashtextextended('fairlease.migrations', 0))"
)
# The owner's own path may name a schema in which others make functions and operators.
_CLOSED_PATH = "select pg_catalog.set_config('search_path', '', true)"
# A change that waits for a busy table makes everybody behind it wait as well.
_TABLE_LOCK_TIMEOUT = "10s"


class MigrationFailed(FairleaseError):
    """A file raised; nothing of it was applied, what came before it was."""

    exit_code = 3


@dataclass(frozen=True)
class MigrationReport:
    """Labels `<version>_<name>` of what this run applied and what is still to be applied.

    `unknown` are applied versions for which there is no file: the database is ahead.
    """

    applied: list[str]
    pending: list[str]
    unknown: list[str]


def check(url: str, *, folder: Path | None = None, to: str | None = None) -> MigrationReport:
    """What `migrate` would apply; changes nothing."""
    known = files.read_folder(folder or resources.migrations_folder())
    with connect(url) as session:
        pgmq_version.require(session)
        return _report(session, known, to, [])


def migrate(
    url: str,
    *,
    folder: Path | None = None,
    to: str | None = None,
    supabase_history: bool = False,
) -> MigrationReport:
    """Apply what is missing, up to version `to`.

    `supabase_history` also writes the Supabase CLI's table, for all that is applied: right for who
    has these files in their own supabase/migrations (`fairlease init`), wrong for others, whose
    `supabase db push` would refuse.
    Raises ConfigurationError (pgmq, a changed file), MigrationFailed, TransientError.
    """
    known = files.read_folder(folder or resources.migrations_folder())
    wanted = files.up_to(known, to)
    with connect(url) as session:
        pgmq_version.require(session)
        history.read(session).missing(wanted)
        applied = [migration.label for migration in wanted if _apply(session, migration)]
        if supabase_history:
            history.record_for_supabase(session, wanted)
        return _report(session, known, to, applied)


def rehearse(url: str, *, folder: Path | None = None, to: str | None = None) -> MigrationReport:
    """Apply everything in one transaction and roll it back: a dry run that cannot lie."""
    known = files.read_folder(folder or resources.migrations_folder())
    wanted = files.up_to(known, to)
    with connect(url) as session:
        pgmq_version.require(session)
        with session.transaction(force_rollback=True):
            applied = [migration.label for migration in wanted if _apply(session, migration)]
        return _report(session, known, to, applied)


def _apply(session: psycopg.Connection, migration: Migration) -> bool:
    with session.transaction():
        session.execute(_CLOSED_PATH)
        session.execute(_LOCK)
        history.prepare(session)
        if history.read(session).has(migration):
            return False
        _run(session, migration)
        history.record(session, migration)
        session.execute("notify pgrst, 'reload schema'")
    return True


def _run(session: psycopg.Connection, migration: Migration) -> None:
    session.execute("select set_config('lock_timeout', %s, true)", (_TABLE_LOCK_TIMEOUT,))
    try:
        session.execute(migration.statements.encode())
    except psycopg.errors.LockNotAvailable as error:
        raise MigrationFailed(
            f"migration {migration.label} was rolled back: a table that it changes was busy for "
            f"{_TABLE_LOCK_TIMEOUT}: run it again at a quieter moment"
        ) from error
    except psycopg.Error as error:
        if session.closed:
            raise
        raise MigrationFailed(
            f"migration {migration.label} failed and was rolled back: {one_line(error)}"
        ) from error


def _report(
    session: psycopg.Connection, known: list[Migration], to: str | None, applied: list[str]
) -> MigrationReport:
    state = history.read(session)
    pending = state.missing(files.up_to(known, to))
    return MigrationReport(
        applied=applied,
        pending=[migration.label for migration in pending],
        unknown=state.unknown_to(known),
    )
