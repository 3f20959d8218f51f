"""What the model and the database are both told: plain values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass

MAX_N_PLAIN = 100
MAX_N = 500
# A rate limit that does not say how long.
UNTOLD = -1


def ms(milliseconds: int) -> int:
    """Microseconds."""
    return milliseconds * 1000


def seconds(count: int) -> int:
    """Microseconds."""
    return count * 1_000_000


class Refused(Exception):
    """Bad arguments: the message of the error must name one of these."""

    def __init__(self, arguments: set[str]) -> None:
        super().__init__(", ".join(sorted(arguments)))
        self.arguments = arguments


class Unspecified:
    """An answer that the specification leaves open."""


@dataclass(frozen=True)
class Claim:
    queue: str = "alpha"
    holder: str = "h1"
    n: int = 1
    sleep_seconds: int = 30
    lease_ttl_seconds: int = 60
    max_per_org: int = 2
    global_cap: int = 8
    pin_org: str | None = None


@dataclass(frozen=True)
class Outcome:
    number: int
    read_ct: int
    do: str = "done"
    after_ms: int = 0
    reason: str = ""
    limit_ms: int | None = None


@dataclass(frozen=True)
class Limits:
    """A row of org_limits."""

    max_per_org: int | None = None
    starts_per_minute: int | None = None
    burst: int = 1
    paused: bool = False
