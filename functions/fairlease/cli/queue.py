"""`fairlease queue`: make, attach and list queues."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fairlease.cli.options import DatabaseUrl, Json, required

app = typer.Typer(no_args_is_help=True, help="Make, attach and list queues.")


class OnSuccess(StrEnum):
    """What becomes of a message that was done."""

    ARCHIVE = "archive"
    DELETE = "delete"


Name = Annotated[str, typer.Argument(help="The queue.")]
Success = Annotated[OnSuccess | None, typer.Option(help="What becomes of a message that is done.")]
MaxAttempts = Annotated[
    int | None, typer.Option(min=1, help="A retry at this many attempts becomes a dead letter.")
]
Retention = Annotated[
    str | None, typer.Option(help="How long archive and dead letters are kept, as `30 days`.")
]
UniqueKeys = Annotated[
    bool | None,
    typer.Option("--unique-keys/--no-unique-keys", help="One live message for each `key`."),
]
Resolver = Annotated[
    str | None,
    typer.Option(help="Your SQL function for a message's org, as `app.org_of(jsonb,jsonb)`."),
]
Overrides = Annotated[
    bool | None,
    typer.Option(
        "--resolver-overrides/--no-resolver-overrides", help="The resolver beats a sender's x-org."
    ),
]


@app.command()
def create(
    name: Name,
    *,
    on_success: Success = None,
    max_attempts: MaxAttempts = None,
    retention: Retention = None,
    unique_keys: UniqueKeys = None,
    resolver: Resolver = None,
    resolver_overrides: Overrides = None,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """Make a queue that fairlease serves.

    Example: fairlease queue create async_calls --max-attempts 8 --retention "30 days"
    """
    from fairlease.admin import queues  # noqa: PLC0415 - psycopg belongs to the extra `direct`

    policy = queues.QueuePolicy(
        on_success, max_attempts, retention, unique_keys, resolver, resolver_overrides
    )
    _say(queues.create(required(database_url), name, policy), "created and attached", as_json)


@app.command()
def attach(
    name: Name,
    *,
    on_success: Success = None,
    max_attempts: MaxAttempts = None,
    retention: Retention = None,
    unique_keys: UniqueKeys = None,
    resolver: Resolver = None,
    resolver_overrides: Overrides = None,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """Let fairlease serve a pgmq queue that exists; again, to change what is given.

    Example: fairlease queue attach async_calls --on-success delete
    """
    from fairlease.admin import queues  # noqa: PLC0415 - as above

    policy = queues.QueuePolicy(
        on_success, max_attempts, retention, unique_keys, resolver, resolver_overrides
    )
    _say(queues.attach(required(database_url), name, policy), "attached", as_json)


@app.command("list")
def list_(database_url: DatabaseUrl = "", as_json: Json = False) -> None:
    """Every queue of the database, and whether fairlease serves it."""
    from fairlease.admin import queues  # noqa: PLC0415 - as above

    found = queues.list_all(required(database_url))
    if as_json:
        typer.echo(json.dumps({"queues": found}))
        return
    table = Table("queue", "attached", "on success", "max attempts", "retention")
    for queue in found:
        values = (queue["on_success"], queue["max_attempts"], queue["retention"])
        shown = ["" if value is None else str(value) for value in values]
        table.add_row(queue["queue"], "yes" if queue["attached"] else "no", *shown)
    Console().print(table)


def _say(answer: dict[str, Any], verb: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(answer))
        return
    for warning in answer.get("warnings", ()):
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(f"{verb} queue {answer['queue']}")
