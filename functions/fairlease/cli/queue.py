"""`fairlease queue`: make, attach, list, measure, pause and purge queues."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from fairlease.cli.confirming import Yes, confirm
from fairlease.cli.listing import print_rows, say_json
from fairlease.cli.options import DatabaseUrl, Json, required
from fairlease.cli.progress import progress

app = typer.Typer(no_args_is_help=True, help="Make, attach, list, measure, pause and purge queues.")


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
        say_json({"queues": found})
        return
    columns = ("queue", "attached", "paused", "on_success", "max_attempts", "retention")
    print_rows(columns, found, "the database has no queue: `fairlease queue create` makes one")


@app.command()
def stats(database_url: DatabaseUrl = "", as_json: Json = False) -> None:
    """What waits and runs in each attached queue, its dead letters, and what holds it up.

    Counts end at 100,000. Example: fairlease queue stats --json
    """
    from fairlease.admin import backlog  # noqa: PLC0415 - as above

    found = backlog.stats(required(database_url))
    if as_json:
        say_json({"queues": found})
        return
    columns = (
        *("queue", "ready", "running", "delayed", "oldest_age_seconds", "slots"),
        *("dead_letters", "dead_letters_new", "held_up_by"),
    )
    print_rows(columns, found, "no queue is attached: `fairlease queue create` makes one")


@app.command()
def pause(name: Name, database_url: DatabaseUrl = "", as_json: Json = False) -> None:
    """Start no message of a queue any more; what runs goes on, and so do senders.

    Example: fairlease queue pause async_calls
    """
    _pause(name, database_url, as_json, paused=True)


@app.command()
def resume(name: Name, database_url: DatabaseUrl = "", as_json: Json = False) -> None:
    """Let a paused queue run again.

    Example: fairlease queue resume async_calls
    """
    _pause(name, database_url, as_json, paused=False)


@app.command()
def purge(
    name: Name, *, yes: Yes = False, database_url: DatabaseUrl = "", as_json: Json = False
) -> None:
    """Delete what waits in a queue, for good; asks, or takes --yes. What runs is left alone.

    What is sent while it works stays. Broken off, it may be called again.

    Example: fairlease queue purge async_calls --yes
    """
    from fairlease.admin import backlog  # noqa: PLC0415 - as above

    url = required(database_url)
    waiting = backlog.count_waiting(url, name)
    confirm(f"Delete the {waiting} messages that wait in {name}, for good?", yes)
    with progress("purging", waiting) as tell:
        done = backlog.purge(url, name, tell)
    if as_json:
        say_json({"queue": name, **done})
    else:
        left = f"; {done['running']} are running and were left" if done["running"] else ""
        typer.echo(f"deleted {done['removed']} messages of {name}{left}")


@app.command()
def notify(
    name: Name,
    *,
    throttle_ms: Annotated[
        int, typer.Option(min=0, max=3_600_000, help="At most one in so many milliseconds.")
    ] = 250,
    off: Annotated[bool, typer.Option("--off", help="Tell of nothing any more.")] = False,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """Tell `fairlease work` of new messages at once, by pgmq's NOTIFY; or, with --off, no more.

    Example: fairlease queue notify async_calls
    """
    from fairlease.admin import notifying  # noqa: PLC0415 - as above

    throttle = None if off else throttle_ms
    notifying.tell_of_inserts(required(database_url), name, throttle)
    if as_json:
        say_json({"queue": name, "throttle_ms": throttle})
    else:
        typer.echo(f"queue {name} {'tells of nothing' if off else 'tells of new messages'}")


def _pause(name: str, database_url: str, as_json: bool, *, paused: bool) -> None:
    from fairlease.admin import backlog  # noqa: PLC0415 - as above

    changed = backlog.pause(required(database_url), name, paused=paused)
    state = "paused" if paused else "running"
    if as_json:
        say_json({"queue": name, "paused": paused, "changed": changed})
    else:
        typer.echo(f"queue {name} is {state}" if changed else f"queue {name} was {state} already")


def _say(answer: dict[str, Any], verb: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(answer))
        return
    for warning in answer.get("warnings", ()):
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(f"{verb} queue {answer['queue']}")
