"""What is shown of rows: a table for people, JSON for programs; nothing that steers a terminal."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Where nobody looks, a line is read by a program and not wrapped.
_PIPED_WIDTH = 400
_CELL_CHARACTERS = 120


def say_json(answer: Mapping[str, Any]) -> None:
    """One line; times as ISO 8601."""
    typer.echo(json.dumps(answer, default=_plain))


def print_rows(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], nothing: str) -> None:
    """A table of these fields, their names as headings; `nothing` is said where there are none."""
    table = Table(*(column.replace("_", " ") for column in columns), box=box.SIMPLE)
    for row in rows:
        # As text: what a sender wrote is no markup.
        table.add_row(*(Text(shown(row.get(column), _CELL_CHARACTERS)) for column in columns))
    if not table.row_count:
        typer.echo(nothing)
        return
    Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH).print(table)


def print_fields(row: Mapping[str, Any]) -> None:
    """One field a line; a text of several lines, such as a traceback, below its name."""
    for name, value in row.items():
        if isinstance(value, str) and "\n" in value:
            typer.echo(f"{name}:")
            for line in value.splitlines():
                typer.echo(f"  {shown(line)}")
        elif value is not None:
            typer.echo(f"{name}: {shown(value)}")


def shown(value: Any, most_characters: int | None = None) -> str:
    """As one line. Control characters, which could steer the terminal, are shown as escapes."""
    match value:
        case None:
            text = ""
        case bool():
            text = "yes" if value else "no"
        case datetime():
            text = f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        case float():
            text = f"{value:.0f}" if value == int(value) else f"{value:.1f}"
        case dict():
            text = json.dumps(value, default=_plain, ensure_ascii=False)
        case list():
            text = ", ".join(map(str, value))
        case _:
            text = str(value)
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    if most_characters is not None and len(text) > most_characters:
        return f"{text[: most_characters - 3]}..."
    return text


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
