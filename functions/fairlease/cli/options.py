"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlease.errors import ConfigurationError

DatabaseUrl = Annotated[
    str,
    typer.Option(
        "--database-url",
        envvar="FAIRLEASE_DATABASE_URL",
        show_default=False,
        help="postgresql://user:password@host:5432/database, of the role that owns the schema.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")]


def required(database_url: str) -> str:
    """Raises ConfigurationError where neither option nor variable is given."""
    if not database_url.strip():
        raise ConfigurationError(
            "no database: give --database-url or set FAIRLEASE_DATABASE_URL to "
            "postgresql://user:password@host:5432/database"
        )
    return database_url.strip()
