"""Asking before something that cannot be undone."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fairlease.errors import InvalidInput

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
NOT_CONFIRMED = 1


def confirm(question: str, yes: bool) -> None:
    """Return if it may be done; else exit code 1.

    Raises InvalidInput where there is nobody to ask.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} There is no terminal to ask on: give --yes to do it")
    # On standard error: standard output is for the answer.
    if not typer.confirm(question, err=True):
        typer.echo("nothing was done", err=True)
        raise typer.Exit(NOT_CONFIRMED)
