"""Pure: from what a handler raised to an outcome. No I/O, no clock of its own."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from fairlease.messages.verdicts import Dead, RateLimited, Retry, Snooze
from fairlease.messages.waiting import seconds_until
from fairlease.model import DeadLetter, Delivery, Limit, Outcome, RetryLater, SnoozeUntil

if TYPE_CHECKING:
    import random
    from datetime import datetime

# How long an org waits when its API refused without saying until when, in seconds.
DEFAULT_LIMIT_SECONDS = 60.0
# A longer wait is a mistake of somebody, and a circuit stays open for no longer either; of no wait
# at all, each further trip would be the double of nothing.
SHORTEST_LIMIT_SECONDS = 1.0
LONGEST_LIMIT_SECONDS = 86_400.0
SHORTEST_SNOOZE_MS = 1_000
# Characters of a traceback that are kept: its end says what happened.
ERROR_LIMIT = 8_000
# Characters of a reason.
REASON_LIMIT = 1_000


def backoff_seconds(policy: Retry, attempt: int, dice: random.Random) -> float:
    """Full jitter below an exponential ceiling; any attempt number is safe."""
    ceiling = policy.cap
    if policy.base > 0:
        # Beyond this many doublings the cap has long been reached; 2.0**1024 would overflow.
        doublings = min(max(attempt, 1) - 1, 60)
        ceiling = min(policy.cap, policy.base * 2.0**doublings)
    return dice.uniform(0.0, ceiling if policy.base > 0 else 0.0)


def judge(
    raised: BaseException,
    *,
    delivery: Delivery,
    attempt: int,
    policy: Retry,
    now: datetime,
    dice: random.Random,
) -> Outcome:
    """The outcome of a handler that raised; `now` is the calendar, for dates that a server sent.

    A verdict that cannot be read is a failure of the handler: it must not keep its message.
    """
    try:
        return _outcome_of(raised, delivery, attempt, policy, now, dice)
    except Exception as error:  # noqa: BLE001 - whatever a handler put into its verdict
        return _retry_or_dead(error, None, delivery, attempt, policy, dice)


def _outcome_of(
    raised: BaseException,
    delivery: Delivery,
    attempt: int,
    policy: Retry,
    now: datetime,
    dice: random.Random,
) -> Outcome:
    match raised:
        case Dead():
            return buried(delivery, raised)
        case Snooze(until=until):
            seconds = seconds_until(until, now)
            if seconds is None:
                raise ValueError(f"Snooze: until={until!r} says no time")
            return SnoozeUntil(delivery, after_ms=_uncounted_milliseconds(seconds))
        case RateLimited(retry_after=after, scope=scope, reason=reason):
            seconds = seconds_until(after, now)
            seconds = DEFAULT_LIMIT_SECONDS if seconds is None else seconds
            seconds = min(max(seconds, SHORTEST_LIMIT_SECONDS), LONGEST_LIMIT_SECONDS)
            limit = Limit(seconds, as_reason(reason)) if scope == "org" else None
            return SnoozeUntil(delivery, after_ms=_uncounted_milliseconds(seconds), limit=limit)
        case Retry(after=after):
            return _retry_or_dead(
                raised, seconds_until(after, now), delivery, attempt, policy, dice
            )
        case _:
            return _retry_or_dead(raised, None, delivery, attempt, policy, dice)


def buried(delivery: Delivery, dead: Dead) -> DeadLetter:
    """With the traceback of what `dead` was raised from."""
    cause = dead.__cause__
    error = "" if cause is None else describe(cause)
    return DeadLetter(delivery, reason=as_reason(dead.reason), error=error)


def _retry_or_dead(
    raised: BaseException,
    after_seconds: float | None,
    delivery: Delivery,
    attempt: int,
    policy: Retry,
    dice: random.Random,
) -> Outcome:
    error = describe(raised)
    if attempt >= policy.max_attempts:
        reason = f"attempts exhausted ({attempt} of {policy.max_attempts})"
        return DeadLetter(delivery, reason=reason, error=error)
    if after_seconds is None:
        seconds = backoff_seconds(policy, attempt, dice)
    else:
        seconds = min(after_seconds, policy.cap)
    return RetryLater(delivery, after_ms=_milliseconds(seconds), error=error)


def as_reason(said: object) -> str:
    """A text that a database can store and a person can read, whatever a handler gave for one."""
    try:
        text = str(said)
    except Exception:  # noqa: BLE001 - as in `describe`
        text = type(said).__name__
    return storable(text[:REASON_LIMIT])


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


def _uncounted_milliseconds(seconds: float) -> int:
    """Such deliveries have no other end: one that is due at once would come again for ever."""
    return max(_milliseconds(seconds), SHORTEST_SNOOZE_MS)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
