"""What the server saw, per org: the independent count that a cap is held against."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

# Points of the time series that are kept per org; a day of chaos must not fill the memory.
SERIES_LIMIT = 200_000
MISMATCHES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Call:
    """One request: the org in its path, the org its slot is charged to, the message it is for."""

    org: str
    charged: str | None
    message: str
    method: str
    path: str


@dataclass(slots=True)
class OrgMeter:
    """Counts of one org. Times are the server's monotonic seconds."""

    requests: int = 0
    abandoned: int = 0
    open_requests: int = 0
    max_concurrent_requests: int = 0
    open_messages: Counter[str] = field(default_factory=Counter)
    max_in_flight: int = 0
    max_requests_per_second: int = 0
    repos_created: int = 0
    duplicate_creates: int = 0
    tokens_issued: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    seen: dict[str, None] = field(default_factory=dict)
    done: dict[str, None] = field(default_factory=dict)
    creates_by_message: Counter[str] = field(default_factory=Counter)
    last_second: deque[float] = field(default_factory=deque)
    series: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=SERIES_LIMIT))

    def opened(self, call: Call, now: float) -> int:
        """The number of requests that are open now, this one included."""
        self.requests += 1
        self.open_requests += 1
        self.max_concurrent_requests = max(self.max_concurrent_requests, self.open_requests)
        self.seen.setdefault(call.message)
        self.open_messages[call.message] += 1
        if self.open_messages[call.message] == 1:
            self._note_in_flight(now)
        self._note_rate(now)
        return self.open_requests

    def closed(self, call: Call, now: float, status: int | None) -> None:
        self.open_requests -= 1
        self.open_messages[call.message] -= 1
        if self.open_messages[call.message] == 0:
            del self.open_messages[call.message]
            self._note_in_flight(now)
        if status is None:
            self.abandoned += 1
            return
        self.statuses[status] += 1
        if call.method not in {"GET", "HEAD"} and status < 300:  # noqa: PLR2004 - 2xx
            self.done.setdefault(call.message)

    def _note_in_flight(self, now: float) -> None:
        self.max_in_flight = max(self.max_in_flight, len(self.open_messages))
        self.series.append((now, len(self.open_messages)))

    def _note_rate(self, now: float) -> None:
        self.last_second.append(now)
        while self.last_second[0] <= now - 1.0:
            self.last_second.popleft()
        self.max_requests_per_second = max(self.max_requests_per_second, len(self.last_second))

    def report(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "abandoned": self.abandoned,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "open_requests": self.open_requests,
            "max_concurrent_requests": self.max_concurrent_requests,
            "in_flight": len(self.open_messages),
            "max_in_flight": self.max_in_flight,
            "max_requests_per_second": self.max_requests_per_second,
            "repos_created": self.repos_created,
            "duplicate_creates": self.duplicate_creates,
            "tokens_issued": self.tokens_issued,
            "messages_seen": list(self.seen),
            "messages_done": list(self.done),
            "messages_duplicated": [m for m, n in self.creates_by_message.items() if n > 1],
            "series": [list(point) for point in self.series],
        }


@dataclass(slots=True)
class Meter:
    """All orgs. `mismatches` are calls of one org on a slot charged to another (never allowed)."""

    started: float
    orgs: dict[str, OrgMeter] = field(default_factory=dict)
    mismatches: int = 0
    mismatched_calls: list[dict[str, str | None]] = field(default_factory=list)

    def of(self, org: str) -> OrgMeter:
        return self.orgs.setdefault(org.lower(), OrgMeter())

    def opened(self, call: Call, now: float) -> int:
        """As `OrgMeter.opened`, and note a call on a slot that is charged to another org."""
        open_requests = self.of(call.org).opened(call, now)
        if call.charged is not None and call.charged.lower() != call.org.lower():
            self.mismatches += 1
            if len(self.mismatched_calls) < MISMATCHES_SHOWN:
                shown = {"called": call.org, "charged": call.charged, "message": call.message}
                self.mismatched_calls.append({**shown, "path": call.path})
        return open_requests

    def report(self, now: float) -> dict[str, Any]:
        return {
            "started": self.started,
            "now": now,
            "mismatches": self.mismatches,
            "mismatched_calls": self.mismatched_calls,
            "orgs": {org: meter.report() for org, meter in sorted(self.orgs.items())},
        }
