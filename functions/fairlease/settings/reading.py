"""One value: what was written, whether it can be taken, and what is taken instead."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.settings.issues import IssueKind

if TYPE_CHECKING:
    from fairlease.settings.knobs import Knob

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NAN = re.compile(r"[+-]?nan", re.IGNORECASE)
# More digits than any bound has; int() itself refuses some thousands of them.
_DIGITS_LIMIT = 18


@dataclass(frozen=True, slots=True)
class Given:
    """A value that somebody wrote: in the variable `env`, or in function.toml under its name."""

    env: str
    raw: object
    place: str


def whole_number(raw: object) -> int | IssueKind:
    """The integer that `raw` spells, or why it spells none. Never raises."""
    match raw:
        case bool():
            return IssueKind.UNPARSEABLE
        case int():
            return raw
        case float():
            return IssueKind.NAN if math.isnan(raw) else IssueKind.FRACTIONAL
        case str():
            return _from_text(raw.strip())
        case _:
            return IssueKind.UNPARSEABLE


def _from_text(text: str) -> int | IssueKind:
    if not text:
        return IssueKind.EMPTY
    if _WHOLE.fullmatch(text):
        return _bounded_int(text)
    if _NAN.fullmatch(text):
        return IssueKind.NAN
    return IssueKind.FRACTIONAL if _DECIMAL.fullmatch(text) else IssueKind.UNPARSEABLE


def _bounded_int(text: str) -> int:
    digits = text.lstrip("+-").lstrip("0") or "0"
    size = int(digits) if len(digits) <= _DIGITS_LIMIT else 10**_DIGITS_LIMIT
    return -size if text.startswith("-") else size


def rejection(knob: Knob, raw: object, isolate_lifetime_ms: int) -> IssueKind | None:
    """Why `raw` cannot be taken, or None if it can."""
    value = whole_number(raw)
    if isinstance(value, IssueKind):
        return value
    if value < knob.minimum:
        return IssueKind.BELOW
    maximum = knob.maximum_at(isolate_lifetime_ms)
    if maximum is not None and value > maximum:
        return IssueKind.ABOVE
    return None


def taken_instead(knob: Knob, kind: IssueKind, isolate_lifetime_ms: int) -> int:
    """The value for a rejected one: the fail-safe, the minimum or the fallback."""
    if knob.fail_safe is not None:
        return knob.fail_safe
    return knob.minimum if kind is IssueKind.BELOW else knob.fallback_at(isolate_lifetime_ms)
