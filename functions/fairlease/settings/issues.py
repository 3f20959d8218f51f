"""What a person should know about a setting that was not taken as it was written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

# What an issue repeats of a value; whoever pastes a page into a variable gets its beginning.
RAW_LIMIT = 80


class IssueKind(StrEnum):
    """Why the value in effect is not the one that was asked for."""

    EMPTY = "empty"
    UNPARSEABLE = "unparseable"
    FRACTIONAL = "fractional"
    NAN = "nan"
    BELOW = "below"
    ABOVE = "above"
    IGNORED = "ignored"
    UNKNOWN = "unknown"
    IN_FLIGHT_CEILING = "in_flight_ceiling"
    HEARTBEAT_INTERVAL = "heartbeat_interval"
    LEASE_OUTLIVES_ISOLATE = "lease_outlives_isolate"
    STALL_OUTLIVES_ISOLATE = "stall_outlives_isolate"
    RESERVE_NOT_COVERED = "reserve_not_covered"
    GRACE_GAP = "grace_gap"
    NO_HEARTBEATS = "no_heartbeats"


@dataclass(frozen=True, slots=True)
class KnobIssue:
    """One deviation: the variable, what it held, what is in effect, and why, in one line."""

    env: str
    raw: str
    effective: int | str
    kind: IssueKind
    message: str

    def as_json(self) -> dict[str, Any]:
        return {
            "env": self.env,
            "raw": self.raw,
            "effective": self.effective,
            "kind": self.kind.value,
            "message": self.message,
        }


def printable(raw: object) -> str:
    """`raw` as text that every log and every JSON can carry, cut to `RAW_LIMIT` characters."""
    text = str(raw)[:RAW_LIMIT]
    encodable = text.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in encodable)
