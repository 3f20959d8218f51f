"""`fairlease settings`: every knob with its value in effect, or the tables made from them."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from fairlease.settings import env_of, knob_table, load_settings
from fairlease.settings.table import as_json, as_markdown


def settings(
    as_a_page: Annotated[
        bool, typer.Option("--markdown", help="The documentation page, docs/settings.md.")
    ] = False,
    as_data: Annotated[
        bool, typer.Option("--json", help="Every knob's range, fallback and value in effect.")
    ] = False,
) -> None:
    """Show the knobs, what is in effect, and what was not taken as it was written."""
    loaded = load_settings(os.environ)
    in_effect = loaded.knobs.model_dump()
    if as_a_page:
        typer.echo(as_markdown(), nl=False)
    elif as_data:
        knobs = [{**entry, "in_effect": in_effect[entry["name"]]} for entry in as_json()]
        typer.echo(
            json.dumps({"knobs": knobs, "issues": [issue.as_json() for issue in loaded.issues]})
        )
    else:
        table = Table(Column("variable", no_wrap=True), "in effect", "unit", "what it does")
        for name, knob in knob_table().items():
            table.add_row(env_of(name), str(in_effect[name]), knob.unit, knob.sentence)
        Console().print(table)
        for issue in loaded.issues:
            typer.echo(f"issue: {issue.message}")
