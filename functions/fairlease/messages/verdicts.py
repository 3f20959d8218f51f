"""What a handler raises to say how its message goes on; returning means done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fairlease.errors import ConfigurationError
from fairlease.messages.waiting import LONGEST_DELAY_SECONDS

if TYPE_CHECKING:
    from datetime import datetime, timedelta


class Verdict(Exception):
    """Base of what a handler may raise on purpose."""


@dataclass(eq=True)
class Retry(Verdict):
    """When to try again: a policy at registration, or a verdict from a handler.

    `base` and `cap` are seconds: the delay before attempt `k + 1` is uniform between 0 and
    `min(cap, base * 2**(k - 1))`. `after` is for a verdict: it replaces the drawn delay, within
    `cap`; as `RateLimited.retry_after`. `max_attempts` counts deliveries without snoozes and
    give-backs.
    """

    max_attempts: int = 10
    base: float = 30.0
    cap: float = 3600.0
    after: float | str | timedelta | datetime | None = None

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ConfigurationError(
                f"Retry: max_attempts is {self.max_attempts}; give 1 or more (1: never retried)"
            )
        if not (0 <= self.base <= self.cap <= LONGEST_DELAY_SECONDS):
            raise ConfigurationError(
                f"Retry: base={self.base}, cap={self.cap}; seconds with 0 <= base <= cap <= "
                f"{LONGEST_DELAY_SECONDS:.0f} are needed"
            )


@dataclass(eq=True)
class Snooze(Verdict):
    """Later, and the attempt is not counted. `until`: seconds from now, or an aware datetime.

    At least a second, since nothing else ends a message that is snoozed again and again. An
    `until` that says no time (NaN) is a failure of the handler, counted.
    """

    until: float | timedelta | datetime


@dataclass(eq=True)
class Dead(Verdict):
    """Trying again cannot help. `reason` is read by a person, at night."""

    reason: str


@dataclass(eq=True)
class RateLimited(Verdict):
    """The API refused for now: the message waits, and so does its whole org.

    `retry_after` as `Snooze.until`, or the text of the header `Retry-After`, seconds or a date; at
    most a day. None, or what says no time: the server did not say, and 60 seconds are assumed.
    """

    retry_after: float | str | timedelta | datetime | None = None
    scope: Literal["org", "method"] = "org"
    reason: str = "rate limited"

    def __post_init__(self) -> None:
        if self.scope not in ("org", "method"):
            raise ConfigurationError(f"RateLimited: scope={self.scope!r}; give 'org' or 'method'")


for _verdict in (Retry, Snooze, Dead, RateLimited):
    # A dataclass that compares by value loses its hash, and `raise` in a task group needs one.
    _verdict.__hash__ = Exception.__hash__  # type: ignore[method-assign]
