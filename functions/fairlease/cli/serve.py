"""`fairlease serve`: the function host."""

from __future__ import annotations

import os
from typing import Annotated

import typer


def serve(
    functions: Annotated[
        list[str] | None,
        typer.Option(help="Folder of function folders, or `bundled`; may be given again."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8787,
    max_rss_mb: Annotated[
        int | None, typer.Option(min=1, help="Replace the worker above this much memory.")
    ] = None,
) -> None:
    """Serve functions over HTTP: POST /functions/v1/NAME wakes one."""
    # Granian and Starlette belong to the extra `host`; other commands do without.
    from fairlease.host.functions import folders_from  # noqa: PLC0415
    from fairlease.host.server import ServeOptions, serve  # noqa: PLC0415

    folders = tuple(folders_from(functions or [], os.environ))
    options = ServeOptions(folders, host=host, port=port, max_rss_mb=max_rss_mb)
    serve(options, lambda url: typer.echo(f"READY {url}"))
