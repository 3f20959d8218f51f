"""`fairlease circuit`: orgs that met a rate limit and are left alone for a while."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlease.cli.listing import print_rows, say_json
from fairlease.cli.options import DatabaseUrl, Json, required

app = typer.Typer(no_args_is_help=True, help="List, open and close the circuits of orgs.")

Org = Annotated[str, typer.Argument(help="The org.")]


@app.command("list")
def list_(
    *,
    closed: Annotated[
        bool, typer.Option("--closed", help="Those that closed of late, too.")
    ] = False,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """Orgs whose messages wait because of a rate limit, and until when.

    Half open: one delivery, its probe, decides. Example: fairlease circuit list --json
    """
    from fairlease.admin import circuits  # noqa: PLC0415 - psycopg belongs to extra `direct`

    found = circuits.list_all(required(database_url), closed=closed)
    if as_json:
        say_json({"circuits": found})
        return
    columns = ("org", "state", "open_until", "seconds_left", "trips", "reason", "probe_msg_id")
    print_rows(columns, found, "no circuit is open")


@app.command("open")
def open_(
    org: Org,
    *,
    duration: Annotated[
        str, typer.Option("--for", help="How long, as `15 minutes` or `2 hours`.")
    ] = "15 minutes",
    reason: Annotated[str | None, typer.Option(help="Why, for who looks later.")] = None,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """Leave an org alone for a while; then one message is let through and decides.

    Example: fairlease circuit open acme --for "2 hours" --reason "their API is down"
    """
    from fairlease.admin import circuits  # noqa: PLC0415 - as above

    opened = circuits.open_(required(database_url), org, duration, reason)
    if as_json:
        say_json(opened)
    else:
        typer.echo(f"the circuit of {opened['org']} is open until {opened['open_until']}")


@app.command()
def close(org: Org, *, database_url: DatabaseUrl = "", as_json: Json = False) -> None:
    """Let an org run again at once, and forget how often it tripped.

    Example: fairlease circuit close acme
    """
    from fairlease.admin import circuits  # noqa: PLC0415 - as above

    closed = circuits.close(required(database_url), org)
    if as_json:
        say_json({"org": org, "closed": closed})
    else:
        typer.echo(f"closed the circuit of {org}" if closed else f"{org} has no open circuit")
