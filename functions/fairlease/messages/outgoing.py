"""What may be sent: checked before the wire, where the error can still name the path."""

from __future__ import annotations

import json
import math
import re
import sys
from typing import TYPE_CHECKING, Any

from fairlease.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlease.model import NewMessage

DEFAULT_SIZE_LIMIT = 1_048_576
KEY_LIMIT_BYTES = 512
# What one call carries: a jsonb array ends at 256 MiB, and proxies well before that.
BATCH_LIMIT = 10_000
BATCH_SIZE_LIMIT = 64 * 1_048_576
LONGEST_DELAY_SECONDS = 2**31 - 1
# Postgres' parser and Python's encoder give up at some depth; no message of ours is this deep.
DEPTH_LIMIT = 200

_SURROGATE = re.compile("[\ud800-\udfff]")


def new_message_json(message: NewMessage) -> dict[str, Any]:
    """As `send_messages` takes it."""
    said: dict[str, Any] = {"message": message.body}
    if message.org is not None:
        said["org"] = message.org
    if message.key is not None:
        said["key"] = message.key
    if message.headers:
        said["headers"] = dict(message.headers)
    return said


def check_batch(
    messages: Sequence[NewMessage], delay_seconds: int, *, size_limit: int = DEFAULT_SIZE_LIMIT
) -> None:
    """All that one call will carry, as `check_message` for each; an error names index and path."""
    if type(delay_seconds) is not int or not 0 <= delay_seconds <= LONGEST_DELAY_SECONDS:
        raise InvalidInput(
            f"delay_seconds={delay_seconds!r}: give whole seconds, 0 to {LONGEST_DELAY_SECONDS}"
        )
    if len(messages) > BATCH_LIMIT:
        raise InvalidInput(
            f"{len(messages)} messages, the limit of one call is {BATCH_LIMIT}; "
            "send the rest in a second call"
        )
    size = 0
    for index, message in enumerate(messages):
        try:
            size += check_message(message, size_limit=size_limit)
        except InvalidInput as error:
            raise InvalidInput(f"message {index}: {error}") from None
        if size > BATCH_SIZE_LIMIT:
            raise InvalidInput(
                f"message {index}: with it the call has more than {BATCH_SIZE_LIMIT} bytes; "
                "send the rest in a second call"
            )


def check_message(message: NewMessage, *, size_limit: int = DEFAULT_SIZE_LIMIT) -> int:
    """Its size in bytes, headers included, which count against the limit as well.

    Raises `InvalidInput`, naming the path, for what jsonb or UTF-8 would refuse. Integers are
    carried digit by digit.
    """
    check_json(message.body)
    check_json(dict(message.headers), "headers")
    if message.org is not None:
        check_text(message.org, "org")
    if message.key is not None:
        check_key(message.key)
        if not isinstance(message.body, dict):
            raise InvalidInput("key: only a message that is a JSON object can carry a key")
    size = _size(message.body) + (_size(dict(message.headers)) if message.headers else 0)
    if size > size_limit:
        raise InvalidInput(
            f"$: the message has {size} bytes, the limit is {size_limit}; "
            "store the data elsewhere and send a reference"
        )
    return size


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def check_key(key: str) -> None:
    """A key that is unique: of a live message, or of an effect."""
    check_text(key, "key")
    if not key or len(key.encode()) > KEY_LIMIT_BYTES:
        raise InvalidInput(f"key: give 1 to {KEY_LIMIT_BYTES} bytes, or no key")


def check_json(value: Any, path: str = "$", depth: int = 0) -> None:
    """Walk a JSON value; `path` is how an error names where it is."""
    if depth > DEPTH_LIMIT:
        raise InvalidInput(f"{path[:100]}: nested deeper than {DEPTH_LIMIT}; flatten it")
    match value:
        case None | bool():
            return
        case int() | float():
            _check_number(value, path)
        case str():
            check_text(value, path)
        case dict():
            for key, item in value.items():
                _check_name(key, path)
                check_json(item, f"{path}.{key}", depth + 1)
        case list() | tuple():
            for index, item in enumerate(value):
                check_json(item, f"{path}[{index}]", depth + 1)
        case _:
            raise InvalidInput(f"{path}: {type(value).__name__} is not JSON; convert it first")


def _check_number(number: Any, path: str) -> None:
    if isinstance(number, float):
        if not math.isfinite(number):
            raise InvalidInput(f"{path}: {number} is not JSON; send null or text instead")
        return
    limit = sys.get_int_max_str_digits()
    # Ten needs 3.3219 bits; the estimate errs by one digit at most, on the safe side.
    if limit and number.bit_length() > (limit - 1) * 3.3219:
        raise InvalidInput(f"{path}: a number of more than {limit - 1} digits; send it as text")


def _check_name(name: Any, path: str) -> None:
    if not isinstance(name, str):
        raise InvalidInput(f"{path}: the key {name!r} is no text; JSON keys are text")
    check_text(name, f"{path} (key)")


def check_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise InvalidInput(f"{path}: contains NUL (\\u0000), which a database cannot store")
    if _SURROGATE.search(text):
        raise InvalidInput(f"{path}: contains a lone surrogate, which is not valid Unicode")
