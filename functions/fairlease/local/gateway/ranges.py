"""Which rows of a result are wanted: `limit`, `offset` and the Range header."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.local.gateway.errors import GatewayError

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEADER = re.compile(r"([0-9]+)-([0-9]*)")
_NUMBER = re.compile(r"\s*(-?[0-9]+)\s*")


@dataclass(frozen=True)
class Rows:
    """Numbers of the first and the last row, counted from 0; `last` None: to the end."""

    first: int = 0
    last: int | None = None

    @property
    def is_empty(self) -> bool:
        return self.last is not None and self.last < self.first

    @property
    def is_limit_zero(self) -> bool:
        return self.last == -1

    @property
    def limit(self) -> int | None:
        return None if self.last is None else self.last - self.first + 1

    def within(self, other: Rows) -> Rows:
        ends = [end for end in (self.last, other.last) if end is not None]
        return Rows(max(self.first, other.first), min(ends) if ends else None)

    def at_most(self, limit: int | None) -> Rows:
        """`limit=0` stays what it is: it asks for no row on purpose."""
        if self.is_limit_zero:
            return _NO_ROWS
        return self if limit is None else self.within(Rows(0, self.first + limit - 1))


ALL_ROWS = Rows()
_NO_ROWS = Rows(0, -1)


def wanted_rows(pairs: Iterable[tuple[str, str | None]], range_header: str | None) -> Rows:
    """`pairs`: of the query string. Raises GatewayError PGRST103."""
    named = {name: value for name, value in pairs if value is not None}
    from_query = _from_query(named.get("limit"), named.get("offset"))
    from_header = _from_header(range_header)
    if from_query.is_limit_zero:
        return _NO_ROWS
    rows = from_header.within(from_query)
    if rows.is_empty:
        raise _not_satisfiable(
            "The lower boundary must be lower than or equal to the upper boundary in the Range "
            "header."
            if from_header.is_empty
            else "Limit should be greater than or equal to zero."
        )
    return rows


def beyond_the_end(offset: int, total: int) -> GatewayError:
    return _not_satisfiable(
        f"An offset of {offset} was requested, but there are only {total} rows."
    )


def _from_query(limit: str | None, offset: str | None) -> Rows:
    limit_number, offset_number = _number(limit), _number(offset)
    by_limit = ALL_ROWS if limit_number is None else Rows(0, limit_number - 1)
    if offset is None:
        return by_limit
    first = offset_number or 0
    if limit is None:
        return Rows(first)
    # A limit that is no number counts as 0 beside an offset.
    return Rows(first, first + (by_limit.limit or 0) - 1)


def _number(text: str | None) -> int | None:
    match = _NUMBER.fullmatch(text) if text is not None else None
    return int(match[1]) if match else None


def _from_header(header: str | None) -> Rows:
    match = _HEADER.fullmatch(header) if header is not None else None
    if match is None:
        return ALL_ROWS
    return Rows(int(match[1]), int(match[2]) if match[2] else None)


def _not_satisfiable(details: str) -> GatewayError:
    return GatewayError(416, "PGRST103", "Requested range not satisfiable", details)
