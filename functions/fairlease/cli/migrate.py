"""`fairlease migrate`: bring a database to this version's schema."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairlease.cli.options import DatabaseUrl, Json, required
from fairlease.errors import InvalidInput

if TYPE_CHECKING:
    from fairlease.admin.migrate import MigrationReport

SOMETHING_PENDING = 4


def migrate(
    database_url: DatabaseUrl = "",
    check: Annotated[
        bool, typer.Option("--check", help="Only say what is missing; exit code 4 if anything is.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Apply all in one transaction and roll it back.")
    ] = False,
    to: Annotated[
        str | None, typer.Option(help="Stop after this version, 14 digits.", show_default=False)
    ] = None,
    supabase_history: Annotated[
        bool,
        typer.Option(
            "--supabase-history",
            help="Also tell the Supabase CLI's table, for who keeps the files (`fairlease init`).",
        ),
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder of migration files instead of ours.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Apply the migrations that this database lacks: each once, each in one transaction.

    Safe to run again, by several at once, and after a failure. What the Supabase CLI applied is
    skipped.

    Example: fairlease migrate --database-url postgresql://postgres:secret@127.0.0.1:54322/postgres
    """
    # psycopg belongs to the extra `direct`; other commands do without.
    from fairlease.admin import migrate as migrations  # noqa: PLC0415

    if check and dry_run:
        raise InvalidInput("--check and --dry-run exclude each other: give one")
    url = required(database_url)
    if check:
        report = migrations.check(url, folder=folder, to=to)
    elif dry_run:
        report = migrations.rehearse(url, folder=folder, to=to)
    else:
        report = migrations.migrate(url, folder=folder, to=to, supabase_history=supabase_history)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report)))
    else:
        _print(report, check=check, dry_run=dry_run)
    if check and report.pending:
        raise typer.Exit(SOMETHING_PENDING)


def _print(report: MigrationReport, *, check: bool, dry_run: bool) -> None:
    verb = "would apply" if dry_run else "applied"
    for label in report.applied:
        typer.echo(f"{verb} {label}")
    if check:
        for label in report.pending:
            typer.echo(f"missing {label}")
    if report.unknown:
        typer.echo(
            f"the database is ahead of this version: it has {', '.join(report.unknown)}", err=True
        )
    if not report.applied and not report.pending:
        typer.echo("up to date")
