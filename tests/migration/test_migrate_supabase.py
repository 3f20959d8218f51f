from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from fairlease.admin.migrate import check, migrate

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND, THIRD = "20260101000000_first", "20260102000000_second", "20260103000000_third"


def cli_applied(url: str, columns: str, values: str) -> None:
    with psycopg.connect(url) as session:
        session.execute("create schema supabase_migrations")
        session.execute(f"create table supabase_migrations.schema_migrations ({columns})".encode())
        session.execute(
            f"insert into supabase_migrations.schema_migrations values {values}".encode()
        )


def cli_rows(url: str) -> list[tuple[str, str]]:
    with psycopg.connect(url) as session:
        return session.execute(
            "select version, name from supabase_migrations.schema_migrations order by version"
        ).fetchall()


NAMED = "version text primary key, statements text[], name text"


def test_what_the_cli_applied_is_skipped(empty: str, folder: Path) -> None:
    with psycopg.connect(empty) as session:
        session.execute(folder.joinpath(f"{FIRST}.sql").read_bytes())
    cli_applied(empty, NAMED, "('20260101000000', null, 'first')")
    assert check(empty, folder=folder).pending == [SECOND, THIRD]
    assert migrate(empty, folder=folder).applied == [SECOND, THIRD]
    assert migrate(empty, folder=folder).applied == []
    assert cli_rows(empty) == [("20260101000000", "first")]


def test_early_cli_kept_no_names(empty: str, folder: Path) -> None:
    cli_applied(empty, "version text primary key", "('20260101000000'), ('20260102000000')")
    assert check(empty, folder=folder).pending == [THIRD]


def test_users_own_migration_of_the_same_second_is_not_ours(empty: str, folder: Path) -> None:
    cli_applied(empty, NAMED, "('20260101000000', null, 'their_table')")
    assert check(empty, folder=folder).pending == [FIRST, SECOND, THIRD]


def test_the_clis_table_is_not_made_unasked(empty: str, folder: Path) -> None:
    migrate(empty, folder=folder)
    with psycopg.connect(empty) as session:
        answer = session.execute("select to_regnamespace('supabase_migrations')").fetchone()
    assert answer == (None,)


@pytest.mark.parametrize("applied_before", [False, True])
def test_the_clis_table_is_written_on_request(
    empty: str, folder: Path, applied_before: bool
) -> None:
    if applied_before:
        migrate(empty, folder=folder)
    migrate(empty, folder=folder, to="20260102000000", supabase_history=True)
    assert cli_rows(empty) == [("20260101000000", "first"), ("20260102000000", "second")]
    migrate(empty, folder=folder, supabase_history=True)
    assert len(cli_rows(empty)) == 3
