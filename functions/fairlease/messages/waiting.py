"""Pure: how long to wait, from whatever a handler or a server says: seconds, an instant, a text."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

# A server may ask for any delay; a year is more patience than a queue should have.
LONGEST_DELAY_SECONDS = 365 * 86_400.0

_DIGITS = re.compile(r"[0-9]{1,400}(\.[0-9]{1,20})?")


def seconds_until(when: object, now: datetime) -> float | None:
    """Seconds from now, from 0 to a year; None for what says no time.

    A text is read as HTTP's `Retry-After`: seconds, or a date. An instant without a zone is UTC.
    """
    if isinstance(when, str):
        when = _retry_after(when.strip())
    match when:
        case datetime():
            aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
            seconds = (aware - now).total_seconds()
        case timedelta():
            seconds = when.total_seconds()
        case bool():
            return None
        case int() | float():
            seconds = when
        case _:
            return None
    # In this order: an integer may be too large for a float, and NaN comes through.
    bounded = min(max(seconds, 0.0), LONGEST_DELAY_SECONDS)
    return None if math.isnan(bounded) else float(bounded)


def _retry_after(text: str) -> float | datetime | None:
    if _DIGITS.fullmatch(text):
        return float(text)
    try:
        return parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
