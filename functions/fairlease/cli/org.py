"""`fairlease org`: what waits for each org, and what limits it."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlease.cli.listing import print_rows, say_json
from fairlease.cli.options import DatabaseUrl, Json, required

app = typer.Typer(no_args_is_help=True, help="List orgs; limit, pause and resume one.")

Org = Annotated[str, typer.Argument(help="The org.")]
Note = Annotated[str | None, typer.Option(help="Why, for who looks later.", show_default=False)]


@app.command("list")
def list_(
    *,
    queue: Annotated[
        str | None, typer.Option(help="Count in this queue alone.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """Orgs by messages due: waiting, running, slots, limits, circuit.

    Example: fairlease org list --queue async_calls
    """
    from fairlease.admin import orgs  # noqa: PLC0415 - psycopg belongs to extra `direct`

    found = orgs.list_all(required(database_url), queue)
    if as_json:
        say_json({"orgs": found[:limit], "total": len(found)})
        return
    columns = (
        *("org", "ready", "running", "delayed", "oldest_age_seconds", "slots", "slots_limit"),
        *("starts_per_minute", "burst", "paused", "circuit", "open_until", "note"),
    )
    print_rows(columns, found[:limit], "no org has messages, slots or limits")
    if len(found) > limit:
        typer.echo(f"{limit} of {len(found)}; --limit shows more")


@app.command()
def limit(
    org: Org,
    *,
    slots: Annotated[
        int | None,
        typer.Option(min=0, help="Slots over all queues, in place of the workers' own limit."),
    ] = None,
    no_slots: Annotated[bool, typer.Option("--no-slots", help="Take that limit away.")] = False,
    per_minute: Annotated[
        float | None, typer.Option(min=0, help="Messages started in a minute, over the fleet.")
    ] = None,
    no_per_minute: Annotated[
        bool, typer.Option("--no-per-minute", help="Take that limit away.")
    ] = False,
    burst: Annotated[
        int | None, typer.Option(min=1, help="Starts at once after a quiet time.")
    ] = None,
    note: Note = None,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """Set what an org may use; what is not given stays. Nothing that runs is stopped.

    Example: fairlease org limit acme --slots 2 --per-minute 600 --burst 20
    """
    from fairlease.admin import orgs  # noqa: PLC0415 - as above

    limits = orgs.OrgLimits(slots, per_minute, burst, note, no_slots, no_per_minute)
    row = orgs.limit(required(database_url), org, limits)
    if as_json:
        say_json(row)
    else:
        own = "the workers' limit of" if row["slots_limit"] is None else row["slots_limit"]
        rate = row["starts_per_minute"]
        starts = "any number of" if rate is None else f"{rate:g} (burst {row['burst']})"
        typer.echo(f"{row['org']}: {own} slots, {starts} starts a minute")


@app.command()
def pause(
    org: Org, *, note: Note = None, database_url: DatabaseUrl = "", as_json: Json = False
) -> None:
    """Start no message of an org any more; what runs goes on, what waits stays.

    Example: fairlease org pause acme --note "asked us to wait"
    """
    _pause(org, note, database_url, as_json, paused=True)


@app.command()
def resume(
    org: Org, *, note: Note = None, database_url: DatabaseUrl = "", as_json: Json = False
) -> None:
    """Let a paused org run again.

    Example: fairlease org resume acme
    """
    _pause(org, note, database_url, as_json, paused=False)


def _pause(org: str, note: str | None, database_url: str, as_json: bool, *, paused: bool) -> None:
    from fairlease.admin import orgs  # noqa: PLC0415 - as above

    changed = orgs.pause(required(database_url), org, paused=paused, note=note)
    state = "paused" if paused else "running"
    if as_json:
        say_json({"org": org, "paused": paused, "changed": changed})
    else:
        typer.echo(f"{org} is {state}" if changed else f"{org} was {state} already")
