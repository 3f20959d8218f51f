"""The databases that a worker of this version may meet: each migration level, and older schemas."""

from __future__ import annotations

from pathlib import Path

import psycopg
from psycopg import sql

from fairlease import resources
from fairlease.admin.migrate import migrate
from fairlease.admin.migration_files import read_folder

QUEUE = "skew"
HERE = Path(__file__).parent
NEWEST = read_folder(resources.migrations_folder())[-1].version
FIRST_WITH_ATTACH = "20261201001600"
#: What the database has before any of ours can claim.
BEFORE_ANY_CLAIM = "20261201001300"

#: Each level from the first that has a claim to the newest.
LEVELS = tuple(
    migration.version
    for migration in read_folder(resources.migrations_folder())
    if migration.version > BEFORE_ANY_CLAIM
)


def level_before(version: str) -> str:
    earlier = [BEFORE_ANY_CLAIM, *LEVELS]
    return earlier[earlier.index(version) - 1]


def reach(url: str, version: str) -> None:
    """Migrate to `version` and have `QUEUE` attached, as that level attaches."""
    migrate(url, to=version)
    with psycopg.connect(url, autocommit=True) as session:
        attach(session, version)


def attach(session: psycopg.Connection, version: str) -> None:
    """A level that cannot attach yet gets what attaching does to the registry and the queue."""
    if version >= FIRST_WITH_ATTACH:
        session.execute("select fairlease.attach_queue(%s)", [QUEUE])
    elif not _is_attached(session):
        session.execute(text("attach_by_hand.sql"))


def drop(session: psycopg.Connection, *functions: str) -> None:
    """Every function of these names in `pgmq_public`, whatever its arguments."""
    found = session.execute(
        "select oid::regprocedure::text from pg_proc"
        " where pronamespace = 'pgmq_public'::regnamespace and proname = any (%s)",
        [list(functions)],
    )
    for (signature,) in found.fetchall():
        session.execute(sql.SQL("drop function {}").format(sql.SQL(signature)))


def _is_attached(session: psycopg.Connection) -> bool:
    found = session.execute("select from fairlease.queues where queue = %s", [QUEUE])
    return found.fetchone() is not None


def text(name: str) -> bytes:
    return HERE.joinpath(name).read_bytes()
