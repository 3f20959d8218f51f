"""`fairlease init`: put the migrations among the files of a Supabase project."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from fairlease.cli.options import Json


def init(
    folder: Annotated[Path, typer.Argument(help="The migrations folder of the project.")] = Path(
        "supabase/migrations"
    ),
    as_json: Json = False,
) -> None:
    """Copy fairlease's migration files into supabase/migrations, for `supabase db push`.

    Nothing is overwritten; run it again after an upgrade to get the new files.

    Example: fairlease init && supabase db push
    """
    from fairlease.admin.scaffold import scaffold  # noqa: PLC0415 - as in `migrate`

    report = scaffold(folder)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report)))
        return
    for name in report.copied:
        typer.echo(f"copied {folder / name}")
    typer.echo(f"{len(report.copied)} copied, {len(report.present)} there already")
