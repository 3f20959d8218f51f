"""`fairlease message`: one message, or those of a queue."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from fairlease.cli.listing import print_fields, print_rows, say_json
from fairlease.cli.options import DatabaseUrl, Json, required

app = typer.Typer(no_args_is_help=True, help="List the messages of a queue; show one.")


class State(StrEnum):
    """Of a message in its queue."""

    READY = "ready"
    RUNNING = "running"
    DELAYED = "delayed"
    RETRYING = "retrying"


Queue = Annotated[str, typer.Argument(help="The queue.")]


@app.command("list")
def list_(
    queue: Queue,
    *,
    org: Annotated[str | None, typer.Option(help="Only of this org.", show_default=False)] = None,
    method: Annotated[
        str | None, typer.Option(help="Only of this method.", show_default=False)
    ] = None,
    state: Annotated[State | None, typer.Option(help="Only those.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the oldest first.")] = 50,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """Messages in a queue with their states, without their payloads.

    Example: fairlease message list async_calls --org acme --state retrying
    """
    from fairlease.admin import messages  # noqa: PLC0415 - psycopg belongs to extra `direct`

    found = messages.list_some(
        required(database_url), queue, org=org, method=method, state=state, limit=limit
    )
    if as_json:
        say_json({"messages": found})
        return
    columns = ("msg_id", "org", "method", "key", "state", "attempts", "enqueued_at", "visible_at")
    print_rows(columns, found, "no such message is in the queue")


@app.command()
def show(
    queue: Queue,
    msg_id: Annotated[int, typer.Argument(help="The message's id.")],
    *,
    payload: Annotated[bool, typer.Option("--payload", help="Message and headers too.")] = False,
    database_url: DatabaseUrl = "",
    as_json: Json = False,
) -> None:
    """Where a message is, queue, archive or dead letters, and what is known of it.

    Example: fairlease message show async_calls 4711
    """
    from fairlease.admin import messages  # noqa: PLC0415 - as above

    found = messages.show(required(database_url), queue, msg_id, payload=payload)
    if as_json:
        say_json({"places": found})
        return
    for place in found:
        print_fields(place)
