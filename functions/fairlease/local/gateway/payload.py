"""The body of a POST: what it is, and which arguments it names."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote_plus

from fairlease.local.gateway.deep_json import outer_shape
from fairlease.local.gateway.errors import invalid_body
from fairlease.local.gateway.media import Kind

if TYPE_CHECKING:
    from fairlease.local.gateway.media import MediaType

_UNREADABLE = "Empty or invalid json"
_UNEVEN_KEYS = "All object keys must match"
_RAW = (Kind.TEXT, Kind.XML, Kind.OCTETS)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class Payload:
    """`raw` goes to Postgres as it is; `pairs` are the arguments of a form or a query string."""

    raw: bytes = b""
    argument_names: frozenset[str] = frozenset()
    pairs: tuple[tuple[str, str], ...] | None = None


def parse_payload(body: bytes, media: MediaType, columns: frozenset[str] | None) -> Payload:
    """`columns` replaces the names that the body would give. Raises GatewayError PGRST102."""
    if media.kind is Kind.JSON:
        if columns is not None:
            return Payload(body, columns)
        # No body at all is no arguments; but only white space is not JSON.
        return _json(body) if body else Payload()
    if media.kind is Kind.CSV:
        return _csv(body)
    if media.kind is Kind.FORM:
        pairs = form_pairs(body.decode(errors="replace"))
        given = tuple((name, value or "") for name, value in pairs)
        return Payload(body, frozenset(name for name, _ in given), given)
    if media.kind in _RAW:
        return Payload(body)
    raise invalid_body(f"Content-Type not acceptable: {media.mime}")


def form_pairs(text: str) -> list[tuple[str, str | None]]:
    """Of a query string or a form; None where there is no `=`."""
    pairs: list[tuple[str, str | None]] = []
    for part in re.split("[&;]", text):
        name, equals, value = part.partition("=")
        if part:
            pairs.append((unquote_plus(name), unquote_plus(value) if equals else None))
    return pairs


def _json(body: bytes) -> Payload:
    value = _parsed(body)
    if isinstance(value, dict):
        return Payload(body, frozenset(value))
    if not isinstance(value, list) or not value:
        # Anything else counts as no arguments, and reaches a function of one json as [].
        return Payload(b"[]")
    return Payload(body, _common_keys(value, _UNEVEN_KEYS))


def _parsed(body: bytes) -> Any:
    try:
        text = body.decode()
        value = _DECODER.decode(text)
        if _SURROGATE.search(text):
            # A lone surrogate cannot be encoded.
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        return _parsed_deep(text)
    except ValueError as error:
        raise invalid_body(_UNREADABLE) from error
    return value


def _parsed_deep(text: str) -> Any:
    try:
        return outer_shape(text)
    except ValueError as error:
        raise invalid_body(_UNREADABLE) from error


def _common_keys(objects: list[Any], uneven: str) -> frozenset[str]:
    if not all(isinstance(each, dict) for each in objects):
        raise invalid_body(uneven)
    names = frozenset(objects[0])
    if any(frozenset(each) != names for each in objects):
        raise invalid_body(uneven)
    return names


def _csv(body: bytes) -> Payload:
    rows = list(csv.reader(io.StringIO(body.decode(errors="replace"), newline="")))
    if not rows:
        raise invalid_body('parse error (not enough input) at ""')
    header, *lines = (row for row in rows if row)
    objects = [
        {
            name: None if value == "NULL" else value
            for name, value in zip(header, line, strict=False)
        }
        for line in lines
    ]
    if not objects:
        return Payload(b"[]")
    names = _common_keys(objects, "All lines must have same number of fields")
    return Payload(json.dumps(objects).encode(), names)


def _refused(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


def _not_needed(_: str) -> int:
    # Only names and shapes are of interest; huge numbers would cost, or fail.
    return 0


_DECODER = json.JSONDecoder(parse_constant=_refused, parse_int=_not_needed, parse_float=_not_needed)
