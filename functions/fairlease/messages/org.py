"""The org of a message: the twin of `fairlease.org_of` in SQL, which is the one that counts."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

UNRESOLVED = "(unresolved)"
# An index row that is too large would make the producer's send fail.
LONGEST_BYTES = 200
KEPT_BYTES = 160

_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def org_of(message: Any, headers: Mapping[str, Any] | None = None) -> str:
    """The first non-empty of the header, pgmq's group, `org`, and what the args say; folded.

    Numbers are read as the database prints them, except floats, whose digits JSON in Python does
    not keep.
    """
    args = _member(message, "args")
    found = (
        _text(_member(headers, "x-org")),
        _text(_member(headers, "x-pgmq-group")),
        _text(_member(message, "org")),
        _text(_member(args, "org")),
        _text(_member(args, "repository")).split("/", 1)[0],
        _text(_member(args, "repository_full_name")).split("/", 1)[0],
    )
    return fold_org(next((text for text in found if text), UNRESOLVED))


def fold_org(org: str) -> str:
    """ASCII letters in lower case, nothing trimmed; the long ones as a head and a digest."""
    folded = org.translate(_LOWER)
    raw = folded.encode()
    if len(raw) <= LONGEST_BYTES:
        return folded
    digest = hashlib.md5(raw, usedforsecurity=False).hexdigest()
    return raw[:KEPT_BYTES].decode(errors="ignore") + digest


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return _as_jsonb_prints(value)


def _as_jsonb_prints(value: Any) -> str:
    """Keys by length, then bytes: the order in which jsonb keeps them."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        members = (f"{_quoted(key)}: {_as_jsonb_prints(value[key])}" for key in keys)
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_as_jsonb_prints(item) for item in value) + "]"
    if value is None:
        return "null"
    return _quoted(value) if isinstance(value, str) else _text(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
