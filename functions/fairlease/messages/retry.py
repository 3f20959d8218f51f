"""Pure: from what a handler raised to an outcome. No I/O, no clock of its own."""

from __future__ import annotations

import math
import traceback
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from fairlease.messages.verdicts import (
    LONGEST_DELAY_SECONDS,
    Dead,
    RateLimited,
    Retry,
    Snooze,
)
from fairlease.model import DeadLetter, Delivery, Limit, Outcome, RetryLater, SnoozeUntil

if TYPE_CHECKING:
    import random

# How long an org waits when its API refused without saying until when, in seconds.
DEFAULT_LIMIT_SECONDS = 60.0
# Characters of a traceback that are kept: its end says what happened.
ERROR_LIMIT = 8_000


def backoff_seconds(policy: Retry, attempt: int, dice: random.Random) -> float:
    """Full jitter below an exponential ceiling; any attempt number is safe."""
    ceiling = policy.cap
    if policy.base > 0:
        # Beyond this many doublings the cap has long been reached; 2.0**1024 would overflow.
        doublings = min(max(attempt, 1) - 1, 60)
        ceiling = min(policy.cap, policy.base * 2.0**doublings)
    return dice.uniform(0.0, ceiling if policy.base > 0 else 0.0)


def seconds_until(when: float | timedelta | datetime, now: datetime) -> float:
    """Seconds from now, never negative, never beyond a year; garbage counts as now."""
    if isinstance(when, datetime):
        if when.tzinfo is None:
            when = when.replace(tzinfo=now.tzinfo)
        seconds = (when - now).total_seconds()
    elif isinstance(when, timedelta):
        seconds = when.total_seconds()
    else:
        try:
            seconds = float(when)
        except (TypeError, ValueError, OverflowError):
            seconds = 0.0
    if math.isnan(seconds):
        seconds = 0.0
    return min(max(seconds, 0.0), LONGEST_DELAY_SECONDS)


def judge(
    raised: BaseException,
    *,
    delivery: Delivery,
    attempt: int,
    policy: Retry,
    now: datetime,
    dice: random.Random,
) -> Outcome:
    """The outcome of a handler that raised; `now` is the calendar, for dates that a server sent."""
    match raised:
        case Dead(reason=reason):
            return DeadLetter(delivery, reason=reason)
        case Snooze(until=until):
            return SnoozeUntil(delivery, after_ms=_milliseconds(seconds_until(until, now)))
        case RateLimited(retry_after=after, scope=scope, reason=reason):
            seconds = DEFAULT_LIMIT_SECONDS if after is None else seconds_until(after, now)
            limit = Limit(seconds, reason) if scope == "org" else None
            return SnoozeUntil(delivery, after_ms=_milliseconds(seconds), limit=limit)
        case _:
            return _retry_or_dead(raised, delivery, attempt, policy, dice)


def _retry_or_dead(
    raised: BaseException, delivery: Delivery, attempt: int, policy: Retry, dice: random.Random
) -> Outcome:
    error = describe(raised)
    if attempt >= policy.max_attempts:
        reason = f"attempts exhausted ({attempt} of {policy.max_attempts})"
        return DeadLetter(delivery, reason=reason, error=error)
    if isinstance(raised, Retry) and raised.after is not None:
        seconds = min(max(float(raised.after), 0.0), policy.cap)
    else:
        seconds = backoff_seconds(policy, attempt, dice)
    return RetryLater(delivery, after_ms=_milliseconds(seconds), error=error)


def describe(raised: BaseException) -> str:
    """The traceback, cut at its beginning, in characters that a database can store."""
    try:
        text = "".join(traceback.format_exception(raised))
    except Exception:  # noqa: BLE001 - an exception whose __str__ raises must not hide itself
        text = type(raised).__name__
    return storable(text[-ERROR_LIMIT:])


def storable(text: str) -> str:
    """Without NUL and lone surrogates: jsonb and UTF-8 refuse both."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
