"""Send through the port, also to a database that does not know `send_messages` yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlease.errors import FunctionMissing, InvalidInput
from fairlease.messages.outgoing import DEFAULT_SIZE_LIMIT, check_batch
from fairlease.messages.trace_headers import with_trace
from fairlease.model import Sent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlease.model import NewMessage
    from fairlease.rpc import Rpc

# `send_batch` returns a set, which PostgREST may cut.
CHUNK = 100


async def send(
    rpc: Rpc,
    queue: str,
    messages: Sequence[NewMessage],
    delay_seconds: int = 0,
    *,
    timeout_seconds: float = 30.0,
    size_limit_bytes: int = DEFAULT_SIZE_LIMIT,
) -> Sent:
    """Check all, then send all in one round trip and one transaction, at most 10,000.

    Raises `InvalidInput`, naming the message's index and the path in it, before anything is sent.
    Where an OpenTelemetry span is active, the messages carry it on (`traceparent`).
    """
    check_batch(messages, delay_seconds, size_limit=size_limit_bytes)
    if not messages:
        return Sent(())
    try:
        return await rpc.send_messages(
            queue, with_trace(messages), delay_seconds, timeout_seconds=timeout_seconds
        )
    except FunctionMissing:
        # Nobody asked for the trace: without headers it is left out.
        bodies = [_without_features(message) for message in messages]
    ids: list[int] = []
    for start in range(0, len(bodies), CHUNK):
        ids += await rpc.send_batch(
            queue, bodies[start : start + CHUNK], delay_seconds, timeout_seconds=timeout_seconds
        )
    return Sent(tuple(ids))


def _without_features(message: NewMessage) -> Any:
    """The bare body for pgmq's own function: an org travels in it, a key cannot."""
    if message.key is not None or message.headers:
        raise InvalidInput(
            "key, headers: this database has no send_messages; run `fairlease migrate` first"
        )
    if message.org is None:
        return message.body
    if not isinstance(message.body, dict) or message.body.get("org", message.org) != message.org:
        raise InvalidInput(
            "org: this database has no send_messages, so the org must stand in the message itself"
        )
    return {**message.body, "org": message.org}
