"""The Prefer header (RFC 7240), as far as RPCs know it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.local.gateway.errors import GatewayError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CHOICES = {
    "resolution": ("merge-duplicates", "ignore-duplicates"),
    "return": ("representation", "minimal", "headers-only"),
    "count": ("exact", "planned", "estimated"),
    "tx": ("commit", "rollback"),
    "missing": ("default", "null"),
    "handling": ("strict", "lenient"),
}
_KNOWN = frozenset(f"{name}={value}" for name, values in _CHOICES.items() for value in values)
_TIMEZONE, _MAX_AFFECTED = "timezone=", "max-affected="


@dataclass(frozen=True)
class Preferences:
    """The first of each kind counts."""

    count: str | None = None
    transaction: str | None = None
    handling: str | None = None
    timezone: str | None = None
    max_affected: int | None = None
    invalid: tuple[str, ...] = ()

    @property
    def is_strict(self) -> bool:
        return self.handling == "strict"

    @property
    def counts_rows(self) -> bool:
        return self.count in {"exact", "estimated"}

    @property
    def highest_affected(self) -> int | None:
        return self.max_affected if self.is_strict else None

    def applied(self) -> str | None:
        """The value of Preference-Applied."""
        parts = [
            self.count and f"count={self.count}",
            self.transaction and f"tx={self.transaction}",
            self.handling and f"handling={self.handling}",
            self.timezone and f"{_TIMEZONE}{self.timezone}",
            None if self.highest_affected is None else f"{_MAX_AFFECTED}{self.highest_affected}",
        ]
        return ", ".join(part for part in parts if part) or None

    def check(self) -> None:
        """Raises GatewayError PGRST122 where strict handling was asked for and cannot be."""
        if self.is_strict and self.invalid:
            raise GatewayError(
                400,
                "PGRST122",
                "Invalid preferences given with handling=strict",
                f"Invalid preferences: {', '.join(self.invalid)}",
            )


NONE = Preferences()


def wanted_timezone(headers: Sequence[str]) -> str | None:
    return _first(_split(headers), _TIMEZONE)


def parse_preferences(
    headers: Sequence[str], *, override_allowed: bool, timezone_known: bool
) -> Preferences:
    """`timezone_known`: whether the database knows the timezone that is wanted."""
    given = _split(headers)
    affected = _first(given, _MAX_AFFECTED)
    is_number = affected is not None and re.fullmatch(r"-?\d+", affected)
    return Preferences(
        count=_chosen(given, "count"),
        transaction=_chosen(given, "tx") if override_allowed else None,
        handling=_chosen(given, "handling"),
        timezone=_first(given, _TIMEZONE) if timezone_known else None,
        max_affected=int(affected) if affected is not None and is_number else None,
        invalid=tuple(each for each in given if not _acceptable(each, timezone_known)),
    )


def _split(headers: Iterable[str]) -> list[str]:
    return [part.strip() for header in headers for part in header.split(",")]


def _first(given: list[str], prefix: str) -> str | None:
    return next((each.removeprefix(prefix) for each in given if each.startswith(prefix)), None)


def _chosen(given: list[str], name: str) -> str | None:
    wanted = {f"{name}={value}": value for value in _CHOICES[name]}
    return next((wanted[each] for each in given if each in wanted), None)


def _acceptable(preference: str, timezone_known: bool) -> bool:
    if preference.startswith(_TIMEZONE):
        return timezone_known
    return preference in _KNOWN or preference.startswith(_MAX_AFFECTED)
