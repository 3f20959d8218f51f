"""What is known to be applied: our own table, and the Supabase CLI's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlease.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from fairlease.admin.migration_files import Migration


@dataclass(frozen=True)
class History:
    """`checksums` by version are ours; `foreign` are (version, name) that the CLI applied."""

    checksums: dict[str, str] = field(default_factory=dict)
    foreign: frozenset[tuple[str, str | None]] = frozenset()

    def has(self, migration: Migration) -> bool:
        """Raises ConfigurationError where an applied file has changed since."""
        known = self.checksums.get(migration.version)
        if known is None:
            # Old versions of the CLI keep no names.
            names = {(migration.version, migration.name), (migration.version, None)}
            return not names.isdisjoint(self.foreign)
        if known != migration.checksum:
            raise ConfigurationError(
                f"migration {migration.label} was changed after it had been applied here: "
                "restore the file and put the change into a new one"
            )
        return True

    def missing(self, migrations: Sequence[Migration]) -> list[Migration]:
        return [migration for migration in migrations if not self.has(migration)]

    def unknown_to(self, migrations: Sequence[Migration]) -> list[str]:
        """Applied versions without a file: the database is ahead of these files."""
        return sorted(set(self.checksums) - {migration.version for migration in migrations})


def read(session: psycopg.Connection) -> History:
    ours: dict[str, str] = {}
    foreign: frozenset[tuple[str, str | None]] = frozenset()
    if _exists(session, "fairlease"):
        ours = dict(
            session.execute("select version, checksum from fairlease.schema_migrations").fetchall()
        )
    if _exists(session, "supabase_migrations"):
        # Through jsonb: early tables have no column `name`.
        rows = session.execute(
            "select m.version, to_jsonb(m) ->> 'name' from supabase_migrations.schema_migrations m"
        )
        foreign = frozenset(rows.fetchall())
    return History(ours, foreign)


def record(session: psycopg.Connection, migration: Migration) -> None:
    session.execute(
        "insert into fairlease.schema_migrations (version, name, checksum) values (%s, %s, %s)",
        (migration.version, migration.name, migration.checksum),
    )


def record_for_supabase(session: psycopg.Connection, migrations: Sequence[Migration]) -> None:
    """As `supabase migration repair --status applied` would."""
    with session.transaction():
        session.execute("create schema if not exists supabase_migrations")
        session.execute(
            "create table if not exists supabase_migrations.schema_migrations "
            "(version text not null primary key, statements text[], name text)"
        )
        for migration in migrations:
            session.execute(
                "insert into supabase_migrations.schema_migrations (version, statements, name) "
                "values (%s, %s, %s) on conflict (version) do nothing",
                (migration.version, [migration.statements], migration.name),
            )


def prepare(session: psycopg.Connection) -> None:
    """Make our table; the caller holds the lock that makes this safe."""
    if _exists(session, "fairlease"):
        return
    session.execute("create schema if not exists fairlease")
    session.execute(
        "create table fairlease.schema_migrations ("
        "version text primary key, name text not null, checksum text not null, "
        "applied_at timestamptz not null default now())"
    )


def _exists(session: psycopg.Connection, schema: str) -> bool:
    """Whether the schema has a table `schema_migrations`.

    Not `to_regclass`: it may answer from a catalogue cache that is older than the advisory lock.
    """
    row = session.execute(
        "select from pg_catalog.pg_class c "
        "join pg_catalog.pg_namespace n on n.oid = c.relnamespace "
        "where n.nspname = %s and c.relname = 'schema_migrations'",
        (schema,),
    ).fetchone()
    return row is not None
