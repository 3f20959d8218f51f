"""What may be sent: checked before the wire, where the error can still name the path."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from fairlease.errors import InvalidInput

if TYPE_CHECKING:
    from fairlease.model import NewMessage

DEFAULT_SIZE_LIMIT = 1_048_576
KEY_LIMIT_BYTES = 512
# Postgres' parser and Python's encoder give up at some depth; no message of ours is this deep.
DEPTH_LIMIT = 200

_SURROGATE = re.compile("[\ud800-\udfff]")


def check_message(message: NewMessage, *, size_limit: int = DEFAULT_SIZE_LIMIT) -> None:
    """Raise `InvalidInput`, naming the path, for what jsonb or UTF-8 would refuse; sizes in bytes.

    Integers pass whatever their size: they are carried digit by digit.
    """
    check_json(message.body)
    check_json(dict(message.headers), "headers")
    if message.org is not None:
        check_text(message.org, "org")
    if message.key is not None:
        check_text(message.key, "key")
        if not message.key or len(message.key.encode()) > KEY_LIMIT_BYTES:
            raise InvalidInput(f"key: give 1 to {KEY_LIMIT_BYTES} bytes, or no key")
        if not isinstance(message.body, dict):
            raise InvalidInput("key: only a message that is a JSON object can carry a key")
    size = len(json.dumps(message.body, ensure_ascii=False).encode())
    if size > size_limit:
        raise InvalidInput(
            f"$: the message has {size} bytes, the limit is {size_limit}; "
            "store the data elsewhere and send a reference"
        )


def check_json(value: Any, path: str = "$", depth: int = 0) -> None:
    """Walk a JSON value; `path` is how an error names where it is."""
    if depth > DEPTH_LIMIT:
        raise InvalidInput(f"{path[:100]}: nested deeper than {DEPTH_LIMIT}; flatten it")
    match value:
        case None | bool() | int():
            return
        case str():
            check_text(value, path)
        case float():
            if not math.isfinite(value):
                raise InvalidInput(f"{path}: {value} is not JSON; send null or text instead")
        case dict():
            for key, item in value.items():
                _check_name(key, path)
                check_json(item, f"{path}.{key}", depth + 1)
        case list() | tuple():
            for index, item in enumerate(value):
                check_json(item, f"{path}[{index}]", depth + 1)
        case _:
            raise InvalidInput(f"{path}: {type(value).__name__} is not JSON; convert it first")


def _check_name(name: Any, path: str) -> None:
    if not isinstance(name, str):
        raise InvalidInput(f"{path}: the key {name!r} is no text; JSON keys are text")
    check_text(name, f"{path} (key)")


def check_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise InvalidInput(f"{path}: contains NUL (\\u0000), which a database cannot store")
    if _SURROGATE.search(text):
        raise InvalidInput(f"{path}: contains a lone surrogate, which is not valid Unicode")
