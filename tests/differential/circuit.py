"""One org's circuit breaker: closed, open until a time, then half open."""

from __future__ import annotations

from dataclasses import dataclass

from .values import UNTOLD, ms, seconds

FIRST_OPENING = seconds(60)
LONGEST_OPENING = seconds(24 * 3600)
QUIET = seconds(24 * 3600)


@dataclass
class Circuit:
    open_until: int | None = None
    opened_at: int | None = None
    closed_at: int | None = None
    trips: int = 0
    probe: tuple[str, int, int] | None = None
    probe_until: int = 0

    def is_half_open(self, now: int) -> bool:
        return self.open_until is not None and self.open_until <= now

    def admits(self, now: int) -> bool:
        """Closed, or half open with no probe under way."""
        if self.open_until is None:
            return True
        return self.is_half_open(now) and not (self.probe and self.probe_until > now)

    def is_probe(self, delivery: tuple[str, int, int]) -> bool:
        return self.open_until is not None and self.probe == delivery

    def report(
        self, now: int, claimed_at: int, limit_ms: int, delivery: tuple[str, int, int]
    ) -> None:
        """A delivery met a rate limit. One incident is one trip, however many report it."""
        before = self.opened_at is not None and claimed_at <= self.opened_at
        if before and not self.is_probe(delivery):
            if limit_ms != UNTOLD:
                self.open_until = max(self.open_until or 0, now + ms(limit_ms))
            return
        wait = FIRST_OPENING if limit_ms == UNTOLD else ms(limit_ms)
        if now - max(self.opened_at or 0, self.open_until or 0, self.closed_at or 0) >= QUIET:
            self.trips = 0
        self.trips += 1
        self.opened_at = now
        self.open_until = now + min(wait * 2 ** (self.trips - 1), LONGEST_OPENING)
        self.closed_at = None
        self.probe = None

    def decide(self, now: int, do: str) -> None:
        """The probe ended without a rate limit."""
        self.probe = None
        if do in ("done", "retry", "dead"):
            self.open_until = None
            self.closed_at = now
