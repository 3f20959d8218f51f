"""Pure: from an answer of 403 or 429 to how long the organization has to wait."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from fairlease import RateLimited

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMIT_STATUSES = frozenset({403, 429})
SHORTEST_WAIT_SECONDS = 1.0
# GitHub's windows are an hour at most; a longer wait than a day is a mistake of somebody.
LONGEST_WAIT_SECONDS = 86_400.0
# An instant that is over for longer says nothing about now.
STALE_SECONDS = 3_600.0

_SECONDS = re.compile(r"[0-9]{1,400}(\.[0-9]{1,20})?")
_SECONDARY = ("secondary rate limit", "abuse detection", "secondary-rate-limits", "abuse-rate")
_PRIMARY = ("api rate limit exceeded",)


def limit_of(
    status: int, headers: Mapping[str, str], said: str, now: datetime
) -> RateLimited | None:
    """The limit that this answer reports, or None: then a 403 is about permissions.

    `headers` are matched in lower case; `said` is the answer's message and documentation URL.
    `retry_after` is in seconds, or None where GitHub does not say how long (nor sensibly so).
    """
    if status not in LIMIT_STATUSES:
        return None
    text = said.lower()
    secondary = any(phrase in text for phrase in _SECONDARY)
    spent = headers.get("x-ratelimit-remaining", "").strip() == "0"
    primary = spent or any(phrase in text for phrase in _PRIMARY)
    retry_after = headers.get("retry-after")
    if status != 429 and retry_after is None and not (secondary or primary):  # noqa: PLR2004
        return None
    server_now = _date(headers.get("date", "")) or now
    wait = None if retry_after is None else wait_seconds(retry_after, server_now)
    if wait is None and primary:
        wait = _until_reset(headers.get("x-ratelimit-reset", ""), server_now)
    kind = "primary" if primary and not secondary else "secondary"
    return RateLimited(wait, scope="org", reason=f"GitHub's {kind} rate limit ({status})")


def wait_seconds(retry_after: str, server_now: datetime) -> float | None:
    """`Retry-After` as seconds or HTTP date, within bounds; None for garbage and the negative."""
    text = retry_after.strip()
    if _SECONDS.fullmatch(text):
        return _bounded(float(text))
    until = _date(text)
    return None if until is None else _from_instant((until - server_now).total_seconds())


def _until_reset(text: str, server_now: datetime) -> float | None:
    if not _SECONDS.fullmatch(text.strip()):
        return None
    return _from_instant(float(text) - server_now.timestamp())


def _from_instant(seconds: float) -> float | None:
    return None if seconds < -STALE_SECONDS else _bounded(seconds)


def _bounded(seconds: float) -> float:
    return min(max(seconds, SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS)


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
