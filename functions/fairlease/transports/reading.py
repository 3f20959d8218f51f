"""JSON from the database, also where Python's parser gives up: one message must not keep others."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from fairlease.model import Unreadable

# Deeper than any message that is sent by us, shallow enough for every parser and walk.
READ_DEPTH = 400
# jsonb stores no NUL, so no message can bring this.
_PRUNED = "\x00fairlease: too deep"
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
TOO_DEEP = Unreadable(
    f"nested deeper than {READ_DEPTH} levels, which Python cannot read; flatten it"
)


def loads(text: str | bytes) -> Any:
    """As `json.loads`, with integers of any size; what is nested too deeply is `TOO_DEEP`."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError):
        said = text.decode() if isinstance(text, bytes) else text
    try:
        return json.loads(said, parse_int=_exact)
    except RecursionError:
        return _marked(json.loads(_prune(said), parse_int=_exact))


def _exact(digits: str) -> int:
    """Python limits the digits of `int(text)`, since it is slow; jsonb limits them to 131,072."""
    return int(Decimal(digits))


def _prune(text: str) -> str:
    """The text with a mark in the place of each value below `READ_DEPTH`."""
    kept: list[str] = []
    depth = start = 0
    for found in _BRACKET.finditer(text):
        bracket = found.group()
        if bracket in "[{":
            depth += 1
            if depth == READ_DEPTH:
                kept += text[start : found.start()], json.dumps(_PRUNED)
        elif bracket in "]}":
            if depth == READ_DEPTH:
                start = found.end()
            depth -= 1
    return "".join([*kept, text[start:]])


def _marked(value: Any) -> Any:
    """A pruned value is unreadable as a whole, and so is the message that it is part of."""
    if _holds_mark(value) and not _is_answer(value):
        return TOO_DEEP
    if isinstance(value, list):
        return [_marked(item) for item in value]
    if isinstance(value, dict):
        return {name: _part(name, item) for name, item in value.items()}
    return value


def _part(name: str, item: Any) -> Any:
    if name == "message":
        return TOO_DEEP if _holds_mark(item) else item
    if name == "headers":
        return None if _holds_mark(item) else item
    return _marked(item)


def _is_answer(value: Any) -> bool:
    """Rows of a claim, or the object of one that settles, rather than a message by itself."""
    if isinstance(value, list):
        return all(isinstance(item, dict) and "msg_id" in item for item in value)
    return isinstance(value, dict) and ("msg_id" in value or "settled" in value)


def _holds_mark(value: Any) -> bool:
    """Without recursion: the caller may stand deep already."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
        elif item == _PRUNED:
            return True
    return False
