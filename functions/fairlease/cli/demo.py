"""`fairlease demo`: the whole path on this machine, refill beside batch-at-a-time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

SCALE = 80.0


def demo(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as one JSON object, nothing else.")
    ] = False,
    scale: Annotated[
        float, typer.Option(min=1, max=1000, help="How many times faster than life.")
    ] = SCALE,
    shrink: Annotated[int, typer.Option(min=1, max=10, help="Divide the load by this.")] = 1,
    plot: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("out/demo.png"),
) -> None:
    """Drain a burst of 190 messages beside smaller loads, twice, and compare.

    Starts Postgres, a gateway, hosts, cron and a server that keeps GitHub's contract and counts;
    sends the load; runs it by continuous refill, then batch-at-a-time. Takes under two minutes.

    Example: fairlease demo --json
    """
    # These belong to the extra `local`; other commands do without.
    from fairlease.demo.show import show  # noqa: PLC0415

    summary = show(scale=scale, shrink=shrink, plot=plot, quiet=as_json)
    if as_json:
        typer.echo(json.dumps(summary.as_json()))
    else:
        typer.echo("\n".join(summary.sentences()))
    if summary.problems():
        raise typer.Exit(1)
