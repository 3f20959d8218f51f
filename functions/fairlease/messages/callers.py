"""Calls on a connection of the caller's own: they take effect with its transaction, or not at all.

Nothing here imports a driver: the connection brings its own. Text goes in and text comes back, so
that it does not matter how the connection reads and writes JSON.
"""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any, Literal

from fairlease.errors import InvalidInput
from fairlease.messages.outgoing import (
    DEFAULT_SIZE_LIMIT,
    check_batch,
    check_key,
    new_message_json,
)
from fairlease.messages.trace_headers import with_trace
from fairlease.model import Sent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairlease.model import NewMessage

Library = Literal["psycopg", "sqlalchemy"]

# `cast`, not `::`, which SQLAlchemy's text would read as one of its own names.
_SEND = """
select cast(pgmq_public.send_messages(
  queue_name => {queue}, messages => cast({messages} as jsonb),
  sleep_seconds => cast({sleep_seconds} as int)
) as text)
"""
_ONCE = "select pgmq_public.once(queue_name => {queue}, key => {key})"


def send_within(
    connection: Any,
    queue: str,
    messages: Sequence[NewMessage],
    delay_seconds: int = 0,
    *,
    size_limit_bytes: int = DEFAULT_SIZE_LIMIT,
) -> Sent:
    """Send in the transaction of a psycopg or SQLAlchemy connection or session.

    The messages are there once the caller commits, and never if it rolls back. What is not right
    raises `InvalidInput` before the wire; what the database refuses raises the driver's own error.
    """
    check_batch(messages, delay_seconds, size_limit=size_limit_bytes)
    if not messages:
        return Sent(())
    return _sent(_value(connection, _SEND, _to_send(queue, messages, delay_seconds)))


async def send_within_async(
    connection: Any,
    queue: str,
    messages: Sequence[NewMessage],
    delay_seconds: int = 0,
    *,
    size_limit_bytes: int = DEFAULT_SIZE_LIMIT,
) -> Sent:
    """`send_within` for an asynchronous connection or session."""
    check_batch(messages, delay_seconds, size_limit=size_limit_bytes)
    if not messages:
        return Sent(())
    return _sent(await _value_async(connection, _SEND, _to_send(queue, messages, delay_seconds)))


def once_within(connection: Any, queue: str, key: str) -> bool:
    """True for the first call with this key that commits: the effect belongs to it.

    Do the effect in the same transaction, and it happens exactly once.
    """
    check_key(key)
    return bool(_value(connection, _ONCE, {"queue": queue, "key": key}))


async def once_within_async(connection: Any, queue: str, key: str) -> bool:
    """`once_within` for an asynchronous connection or session."""
    check_key(key)
    return bool(await _value_async(connection, _ONCE, {"queue": queue, "key": key}))


def _to_send(queue: str, messages: Sequence[NewMessage], delay_seconds: int) -> dict[str, Any]:
    said = [new_message_json(message) for message in with_trace(messages)]
    return {
        "queue": queue,
        "messages": json.dumps(said, ensure_ascii=False),
        "sleep_seconds": delay_seconds,
    }


def _sent(answer: str) -> Sent:
    value = json.loads(answer)
    return Sent(tuple(value["ids"]), frozenset(value["existing"]))


def _value(connection: Any, query: str, values: Mapping[str, Any]) -> Any:
    library = _library(connection, is_async=False)
    if library == "sqlalchemy":
        return connection.execute(_text(query, values), values).scalar_one()
    with connection.cursor(row_factory=_first_column) as cursor:
        return cursor.execute(_placed(query, values), values).fetchone()


async def _value_async(connection: Any, query: str, values: Mapping[str, Any]) -> Any:
    library = _library(connection, is_async=True)
    if library == "sqlalchemy":
        return (await connection.execute(_text(query, values), values)).scalar_one()
    async with connection.cursor(row_factory=_first_column) as cursor:
        return await (await cursor.execute(_placed(query, values), values)).fetchone()


def _library(connection: Any, *, is_async: bool) -> Library:
    names = {base.__module__.partition(".")[0] for base in type(connection).__mro__}
    found: Library | None = None
    if hasattr(connection, "execute"):
        if "psycopg" in names and hasattr(connection, "cursor"):
            found = "psycopg"
        elif "sqlalchemy" in names:
            found = "sqlalchemy"
    if found is None:
        raise InvalidInput(
            f"connection: {type(connection).__name__} is none of psycopg or SQLAlchemy; give a "
            "connection or session whose transaction the call belongs to"
        )
    if inspect.iscoroutinefunction(connection.execute) is not is_async:
        other = "await the ..._async function" if not is_async else "call the one without _async"
        raise InvalidInput(f"connection: {type(connection).__name__} is of the other kind; {other}")
    return found


def _placed(query: str, values: Mapping[str, Any]) -> str:
    return query.format(**{name: f"%({name})s" for name in values})


def _text(query: str, values: Mapping[str, Any]) -> Any:
    from sqlalchemy import text  # noqa: PLC0415 - only who has such a connection needs it

    return text(query.format(**{name: f":{name}" for name in values}))


def _first_column(_cursor: Any) -> Callable[[Sequence[Any]], Any]:
    return lambda values: values[0]
