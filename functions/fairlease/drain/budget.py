"""How long a run may claim: an absolute instant, anchored to the birth of the isolate."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairlease.clock import Clock, SystemClock
from fairlease.errors import ConfigurationError

# Set once per process: the isolate's clock starts with it, not with the poke that woke a run.
ISOLATE_STARTED_AT = SystemClock().monotonic()

# A handler must be through, or cancelled, this long before the isolate is killed (seconds).
ISOLATE_RESERVE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RunBudget:
    """Instants of `clock.monotonic()` in seconds; infinite where there is no bound.

    Past `claim_until` nothing is claimed and work in flight finishes; no handler runs beyond
    `handlers_until`; at `isolate_end` the process is killed.
    """

    claim_until: float = math.inf
    isolate_end: float = math.inf

    @property
    def handlers_until(self) -> float:
        return self.isolate_end - ISOLATE_RESERVE_SECONDS

    def allows_claim(self, now: float) -> bool:
        """Also not once a handler would have no time left: it would only be given back."""
        return now < min(self.claim_until, self.handlers_until)


def run_budget(
    budget_seconds: float | None,
    *,
    lifetime_seconds: float | None = None,
    clock: Clock | None = None,
    isolate_started_at: float | None = None,
) -> RunBudget:
    """The budget of every run of this isolate; None is unbounded.

    Raises `ConfigurationError` for anything but a positive finite number, and for a clock without
    the anchor that belongs to it: the two would count from different origins.
    """
    if clock is not None and isolate_started_at is None:
        raise ConfigurationError("run budget: an injected clock needs isolate_started_at as well")
    anchor = ISOLATE_STARTED_AT if isolate_started_at is None else isolate_started_at
    return RunBudget(
        claim_until=anchor + _seconds("budget_seconds", budget_seconds),
        isolate_end=anchor + _seconds("lifetime_seconds", lifetime_seconds),
    )


def _seconds(name: str, value: float | None) -> float:
    if value is None:
        return math.inf
    if isinstance(value, bool) or not math.isfinite(value) or value <= 0:
        raise ConfigurationError(
            f"run budget: {name}={value!r}; give a positive number of seconds, or None for no bound"
        )
    return value
