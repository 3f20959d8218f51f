"""`fairlease dev`: everything on this machine, without Docker."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Annotated

import typer

_INTERRUPTED = 130


def dev(
    functions: Annotated[
        list[str] | None,
        typer.Option(help="Folder of function folders, or `bundled`; may be given again."),
    ] = None,
    data: Annotated[Path, typer.Option(help="Where the database and the keys are kept.")] = Path(
        ".fairlease"
    ),
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Keep the data, or throw it away at the end.")
    ] = True,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of the API; 0 takes a free one.")
    ] = 54321,
    host_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of the function host; 0 takes a free one.")
    ] = 8787,
    database_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Of Postgres.", show_default="a free one"),
    ] = None,
) -> None:
    """Run Postgres with pgmq, the API, the function host and cron until Ctrl-C.

    Prints what an application needs as environment lines; what the parts say goes to stderr. For
    development and tests: it listens on loopback alone.

    Example: fairlease dev --functions functions --no-keep
    """
    # These belong to the extra `local`; other commands do without.
    from fairlease.host.functions import folders_from  # noqa: PLC0415
    from fairlease.local.stack import LocalStack, StackOptions  # noqa: PLC0415

    options = StackOptions(
        functions=folders_from(functions or [], os.environ),
        data=data if keep else None,
        gateway_port=port,
        host_port=host_port,
        database_port=database_port,
    )
    # A terminal that closes and a supervisor that stops us want what Ctrl-C wants.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        with LocalStack(options, lambda line: typer.echo(line, err=True)) as stack:
            for name, value in stack.environment().items():
                typer.echo(f"{name}={value}")
            kept = f"data in {data}" if keep else "nothing is kept"
            names = ", ".join(stack.functions)
            typer.echo(f"# serving {names}; {kept}; Ctrl-C stops everything", err=True)
            stack.wait()
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None
