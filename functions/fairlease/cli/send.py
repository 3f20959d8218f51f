"""`fairlease send`: put messages on a queue."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairlease.app import App
from fairlease.errors import InvalidInput
from fairlease.messages.sending import send as send_all
from fairlease.model import NewMessage, Sent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STDIN = "-"


def send(
    queue: Annotated[str, typer.Argument(help="The queue.")],
    message: Annotated[str, typer.Argument(help="The message as JSON; `-` reads one per line.")],
    *,
    org: Annotated[str | None, typer.Option(help="The org that the messages belong to.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Unique while its message is live; for one message.")
    ] = None,
    delay: Annotated[int, typer.Option(min=0, help="Seconds until they become visible.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object instead of text.")
    ] = False,
) -> None:
    """Send messages, all or none; prints their ids.

    Example: fairlease send invites '{"method": "invite", "args": {}}' --org acme
    """
    bodies = list(_bodies(sys.stdin if message == STDIN else [message]))
    if key is not None and len(bodies) != 1:
        raise InvalidInput(f"--key is for one message, not for {len(bodies)}; put keys apart")
    messages = [NewMessage(body, org=org, key=key) for body in bodies]
    sent = asyncio.run(_send(queue, messages, delay))
    if as_json:
        typer.echo(json.dumps({"ids": sent.ids, "existing": sorted(sent.existing)}))
        return
    for index, msg_id in enumerate(sent.ids):
        typer.echo(f"{msg_id} was live already" if index in sent.existing else str(msg_id))


def _bodies(lines: Iterable[str]) -> Iterator[Any]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"message {number} is not JSON: {error}") from None


async def _send(queue: str, messages: list[NewMessage], delay_seconds: int) -> Sent:
    app = App(os.environ)
    limit = app.settings().knobs.message_size_limit_bytes
    rpc = app.connect()
    try:
        return await send_all(rpc, queue, messages, delay_seconds, size_limit_bytes=limit)
    finally:
        await rpc.aclose()
