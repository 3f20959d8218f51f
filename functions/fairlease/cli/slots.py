"""`fairlease slots`: who may run messages right now, and taking that away."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlease.cli.confirming import Yes, confirm
from fairlease.cli.listing import print_rows, say_json, shown
from fairlease.cli.options import DatabaseUrl, Json, required
from fairlease.errors import InvalidInput

app = typer.Typer(no_args_is_help=True, help="List the slots of the fleet; release some.")

Queue = Annotated[str | None, typer.Option(help="Only for this queue.", show_default=False)]
Org = Annotated[str | None, typer.Option(help="Only for this org.", show_default=False)]


@app.command("list")
def list_(
    *, queue: Queue = None, org: Org = None, database_url: DatabaseUrl = "", as_json: Json = False
) -> None:
    """Every slot with its holder, org and the time that is left of its lease.

    A slot that is not live has lapsed: it counts for nothing. Example: fairlease slots list
    """
    from fairlease.admin import slots  # noqa: PLC0415 - psycopg belongs to extra `direct`

    found = slots.list_all(required(database_url), queue, org)
    if as_json:
        say_json({"slots": found})
        return
    columns = (
        *("seat", "holder", "queue", "org", "live", "expires_in_seconds", "held_seconds"),
        "claims",
    )
    print_rows(columns, found, "nobody holds a slot")


@app.command()
def release(
    holders: Annotated[
        list[str] | None, typer.Argument(help="Holders, as `slots list` names them.")
    ] = None,
    *,
    queue: Queue = None,
    org: Org = None,
    yes: Yes = False,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """Free slots before their leases end; asks, or takes --yes.

    For workers that are dead. One that lives claims nothing more under that name, and what it
    runs goes on beside whoever takes the slot: the caps are exceeded until it ends.

    Example: fairlease slots release async_calls/web-1/4711/ab12 --yes
    """
    from fairlease.admin import slots  # noqa: PLC0415 - as above

    url = required(database_url)
    if bool(holders) == (queue is not None or org is not None):
        raise InvalidInput("say which: holders, or --queue and --org; `slots list` shows them")
    held = slots.list_all(url, queue, org)
    meant = [slot for slot in held if not holders or slot["holder"] in holders]
    live = sum(slot["live"] for slot in meant)
    if meant:
        confirm(f"Release {len(meant)} slots, {live} of them live?", yes)
    freed = slots.release(url, [slot["holder"] for slot in meant])
    missing = sorted(set(holders or ()) - {slot["holder"] for slot in freed})
    if as_json:
        say_json({"released": freed, "missing": missing})
    else:
        for slot in freed:
            typer.echo(f"released seat {slot['seat']} of {shown(slot['holder'])}")
        typer.echo(f"released {len(freed)} slots")
    if missing:
        raise InvalidInput(
            f"no slot is held by {', '.join(map(shown, missing))}: `slots list` shows who holds one"
        )
