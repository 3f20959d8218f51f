"""`fairlease work`: drains in a plain process, without HTTP and without cron."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from fairlease.cli.listing import say_json
from fairlease.cli.options import Json

if TYPE_CHECKING:
    from fairlease.host.shifts import Totals


def work(
    names: Annotated[
        list[str] | None, typer.Argument(help="The drains to run; all where none is named.")
    ] = None,
    functions: Annotated[
        list[str] | None,
        typer.Option(help="Folder of function folders, or `bundled`; may be given again."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Drain queues until SIGTERM or Ctrl-C: a long-lived worker, without HTTP and without cron.

    Where FAIRLEASE_DATABASE_URL is set, new messages wake it (`fairlease queue notify`); it polls
    as well. At the end it prints what it did. A second Ctrl-C ends the handlers too. Exits with 70
    where a handler did not end in the grace, FAIRLEASE_GRACE_SECONDS.

    Example: fairlease work github_worker --functions functions
    """
    # These belong to the extra `host`; other commands do without.
    from fairlease.host.functions import folders_from  # noqa: PLC0415
    from fairlease.host.work import work  # noqa: PLC0415

    def end(totals: Totals) -> None:
        if as_json:
            say_json(asdict(totals))
        else:
            typer.echo(f"DONE {totals.messages} messages in {totals.runs} runs")

    folders = folders_from(functions or [], os.environ)
    work(
        folders,
        names or (),
        os.environ,
        # A reader of JSON gets one object and nothing else.
        lambda drains: None if as_json else typer.echo(f"READY {' '.join(f.name for f in drains)}"),
        end,
    )
