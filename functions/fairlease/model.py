"""The values that travel between the database and the drain: plain, frozen, no behaviour of I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

#: The visibility timeout that a message never outlives by design: one worst message, in seconds.
WORST_MESSAGE_SECONDS = 120


class ClaimStatus(StrEnum):
    """What a claim found. A status that this version does not know reads as `NO_DEMAND`."""

    CLAIMED = "claimed"
    NO_DEMAND = "no_demand"
    ORG_CAPACITY = "org_capacity"
    NO_CAPACITY = "no_capacity"

    @classmethod
    def _missing_(cls, _value: object) -> ClaimStatus:
        return cls.NO_DEMAND


@dataclass(frozen=True, slots=True)
class Delivery:
    """One reading of one message: `(msg_id, read_ct)` fences everything that is said about it."""

    msg_id: int
    read_ct: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The body of a message that its reader cannot parse; `reason` is for a person."""

    reason: str


@dataclass(frozen=True, slots=True)
class Message:
    """A claimed message. `attempt` and `crashes` count as the database does."""

    msg_id: int
    read_ct: int
    body: Any
    enqueued_at: datetime | None = None
    headers: Mapping[str, Any] | None = None
    attempt: int = 1
    crashes: int = 0
    # An earlier delivery never ended: this one must be recorded before its handler starts.
    suspect: bool = False

    @property
    def delivery(self) -> Delivery:
        return Delivery(self.msg_id, self.read_ct)


@dataclass(frozen=True, slots=True)
class Limit:
    """A rate limit that an org met: its circuit opens for this long."""

    retry_after_seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one delivery, before it is said which: one of the cases below."""

    delivery: Delivery
    took_ms: int = 0
    limit: Limit | None = None


@dataclass(frozen=True, slots=True)
class Done(Outcome):
    """The handler returned."""


@dataclass(frozen=True, slots=True)
class RetryLater(Outcome):
    """The handler failed and may be tried again after a delay."""

    after_ms: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class SnoozeUntil(Outcome):
    """The handler asked for later; the attempt does not count."""

    after_ms: int = 0


@dataclass(frozen=True, slots=True)
class GiveBack(Outcome):
    """Not started, or ended by us: visible again at once, the attempt does not count."""


@dataclass(frozen=True, slots=True)
class DeadLetter(Outcome):
    """Trying again cannot help; a person decides."""

    reason: str = ""
    error: str = ""


class SettleResult(StrEnum):
    """What the database did with an outcome."""

    APPLIED = "applied"
    ALREADY = "already"
    LOST = "lost"
    GONE = "gone"
    REFUSED = "refused"

    @classmethod
    def _missing_(cls, _value: object) -> SettleResult:
        return cls.REFUSED


@dataclass(frozen=True, slots=True)
class Settled:
    """The answer to one outcome."""

    msg_id: int
    result: SettleResult
    note: str = ""


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """The arguments of a claim. `pin_org` None means: leave the argument out of the call."""

    queue: str
    holder: str
    n: int
    sleep_seconds: int
    lease_ttl_seconds: int
    max_per_org: int
    global_cap: int
    pin_org: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """What a claim, or a settle with a claim, brought back. `retry_after_ms` in milliseconds."""

    status: ClaimStatus
    org: str | None = None
    messages: tuple[Message, ...] = ()
    cause: str | None = None
    retry_after_ms: int | None = None
    settled: tuple[Settled, ...] = ()


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The answer to a heartbeat: what was extended, what another delivery owns, what is gone."""

    slot_alive: bool
    extended: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class QueueStats:
    """One queue at one moment. Counts end at 100,000; the age is of the longest due, in seconds.

    `circuits_open` are those that hold messages of this queue back; `dead_letters_new` came in the
    last 15 minutes.
    """

    queue: str
    ready: int = 0
    running: int = 0
    delayed: int = 0
    oldest_age_seconds: float = 0.0
    dead_letters: int = 0
    dead_letters_new: int = 0
    circuits_open: int = 0


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to send. `key` is unique while its message is live."""

    body: Any
    org: str | None = None
    key: str | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sent:
    """Ids in the order of the messages; `existing` are the indexes whose key was already live."""

    ids: tuple[int, ...]
    existing: frozenset[int] = frozenset()
