"""`fairlease init`: put migrations and shims among the files of a Supabase project."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Annotated

import typer

from fairlease.cli.options import Json


def init(
    folder: Annotated[
        Path, typer.Argument(help="The folder that `supabase init` has made.")
    ] = Path("supabase"),
    functions: Annotated[
        list[str] | None,
        typer.Option(help="Folder of function folders, or `bundled`; may be given again."),
    ] = None,
    no_shims: Annotated[
        bool, typer.Option("--no-shims", help="Migrations alone, where pokes go to hosts.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write fairlease's migrations, and a Deno shim for each function, into a Supabase project.

    What is there stays; run it again after an upgrade, or for a new function.

    Example: supabase init && fairlease init --functions ./functions && supabase db push
    """
    from fairlease.admin.scaffold import scaffold  # noqa: PLC0415 - as in `migrate`

    report = scaffold(folder, [] if no_shims else _names(functions or []))
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report)))
        return
    for name in report.written:
        typer.echo(f"wrote {folder / name}")
    typer.echo(f"{len(report.written)} written, {len(report.present)} there already")
    for remark in report.remarks:
        typer.echo(f"to do: {remark}")


def _names(functions: list[str]) -> list[str]:
    from fairlease.host.functions import discover, folders_from  # noqa: PLC0415 - extra `host`

    return list(discover(folders_from(functions, os.environ)))
