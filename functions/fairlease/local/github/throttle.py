"""GitHub's primary and secondary rate limits of one org, decided before an endpoint runs."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from fairlease.local.github.answers import DOCS, ApiError

SECONDARY_MESSAGE = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. "
    "If you reach out to GitHub Support for help, please include the request ID."
)
SECONDARY_DOCS = (
    f"{DOCS}/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits"
)
PRIMARY_DOCS = f"{DOCS}/overview/rate-limits-for-the-rest-api"


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps of one org; the defaults are GitHub's documented ones."""

    primary: int = 5_000
    window_seconds: float = 3_600.0
    max_concurrent: int = 100
    requests_per_minute: int = 900
    creates_per_minute: int = 80
    retry_after_seconds: int = 60
    status: Literal[403, 429] = 403


@dataclass(slots=True)
class Throttle:
    """Sliding windows of one org. A scaled world has a scaled minute and hour."""

    limits: Limits
    scale: float
    started: float
    window: int = 0
    used: int = 0
    minute: deque[float] = field(default_factory=deque)
    creates: deque[float] = field(default_factory=deque)

    def admit(self, now: float, concurrent: int, *, creates: bool) -> None:
        """Raise the limit that this request meets; `concurrent` counts it in."""
        self._roll(now)
        if self.used >= self.limits.primary:
            raise self._primary()
        self.used += 1
        if concurrent > self.limits.max_concurrent:
            raise self._secondary()
        self._within(self.minute, now, self.limits.requests_per_minute)
        if creates:
            self._within(self.creates, now, self.limits.creates_per_minute)

    def headers(self, now: float, epoch_now: float) -> dict[str, str]:
        self._roll(now)
        ends = self.started + (self.window + 1) * self.limits.window_seconds * self.scale
        return {
            "x-ratelimit-limit": str(self.limits.primary),
            "x-ratelimit-remaining": str(max(self.limits.primary - self.used, 0)),
            "x-ratelimit-used": str(self.used),
            "x-ratelimit-reset": str(math.ceil(epoch_now + ends - now)),
            "x-ratelimit-resource": "core",
        }

    def _roll(self, now: float) -> None:
        window = int((now - self.started) / (self.limits.window_seconds * self.scale))
        if window != self.window:
            self.window, self.used = window, 0

    def _within(self, times: deque[float], now: float, cap: int) -> None:
        while times and times[0] <= now - 60.0 * self.scale:
            times.popleft()
        if len(times) >= cap:
            raise self._secondary()
        times.append(now)

    def _primary(self) -> ApiError:
        message = "API rate limit exceeded for installation."
        return ApiError(self.limits.status, message, documentation=PRIMARY_DOCS)

    def _secondary(self) -> ApiError:
        return ApiError(
            self.limits.status,
            SECONDARY_MESSAGE,
            documentation=SECONDARY_DOCS,
            headers={"retry-after": str(self.limits.retry_after_seconds)},
        )
