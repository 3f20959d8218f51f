"""Send through the port, also to a database that does not know `send_messages` yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlease.errors import FunctionMissing, InvalidInput
from fairlease.messages.outgoing import check_message
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
) -> Sent:
    """Check all, then send all in one round trip. Raises `InvalidInput` before anything is sent.

    Where an OpenTelemetry span is active, the messages carry it on (`traceparent`).
    """
    for index, message in enumerate(messages):
        try:
            check_message(message)
        except InvalidInput as error:
            raise InvalidInput(f"message {index}: {error}") from None
    if isinstance(delay_seconds, bool) or not 0 <= delay_seconds <= 2**31 - 1:
        raise InvalidInput(f"delay_seconds={delay_seconds!r}: give whole seconds, 0 or more")
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
