"""What the simulated database stores: messages in their queues, slots, and limits of orgs."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlease.model import Message

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True, eq=False)
class Row:
    """A message in its queue, and what is kept beside it of deliveries that ended."""

    msg_id: int
    org: str
    body: Any
    visible_at: float
    key: str | None = None
    read_ct: int = 0
    read_at: float = -math.inf
    closed_read_ct: int = 0
    closed_count: int = 0
    uncounted: int = 0
    begun_read_ct: int = 0
    begun_count: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the last delivery ended while the message stayed."""
        return self.closed_read_ct == self.read_ct

    def runs(self, now: float) -> bool:
        return self.read_ct > 0 and not self.is_over and self.visible_at > now

    def close(self, *, counted: bool) -> None:
        self.closed_read_ct = self.read_ct
        self.closed_count += 1
        self.uncounted += 0 if counted else 1
        if self.begun_read_ct == self.read_ct:
            self.begun_count -= 1

    def begin(self) -> None:
        """Recorded once for a delivery that follows one which never ended."""
        if self.begun_read_ct != self.read_ct:
            self.begun_read_ct = self.read_ct
            self.begun_count += 1

    def as_message(self) -> Message:
        return Message(
            msg_id=self.msg_id,
            read_ct=self.read_ct,
            body=self.body,
            attempt=self.read_ct - self.uncounted,
            crashes=self.begun_count,
            suspect=self.read_ct - self.closed_count > 1,
        )


@dataclass(slots=True)
class Slot:
    """A lease row; one whose time has passed counts for nothing and is never revived."""

    holder: str
    queue: str
    org: str
    expires_at: float


@dataclass(slots=True)
class OrgState:
    """Limits of one org, and its circuit. `full_at`: when all tokens are back (GCRA)."""

    max_per_org: int | None = None
    paused: bool = False
    starts_per_minute: float | None = None
    burst: int = 1
    full_at: float = -math.inf
    # The circuit: open until then; afterwards one delivery, the probe, decides.
    tripped: bool = False
    open_until: float = -math.inf
    opened_at: float = -math.inf
    probe: tuple[int, int] | None = None
    probe_until: float = -math.inf

    def circuit_blocks(self, now: float) -> bool:
        return self.tripped and (now < self.open_until or now < self.probe_until)

    def trip(self, seconds: float, now: float) -> None:
        self.tripped, self.probe, self.probe_until = True, None, -math.inf
        self.open_until, self.opened_at = max(self.open_until, now + seconds), now

    def starts_left(self, now: float) -> int:
        """How many messages may start now; very many without a rate."""
        if self.starts_per_minute is None:
            return 1 << 30
        interval = 60 / self.starts_per_minute
        tolerance = self.burst * interval
        return max(0, math.floor((now + tolerance - max(self.full_at, now)) / interval + 1e-9))

    def start(self, count: int, now: float) -> None:
        if self.starts_per_minute is not None:
            self.full_at = max(self.full_at, now) + count * 60 / self.starts_per_minute

    def seconds_to_token(self, now: float) -> float:
        interval = 60 / (self.starts_per_minute or math.inf)
        return max(0.0, self.full_at - now - (self.burst - 1) * interval)


@dataclass(slots=True)
class Queue:
    """One queue; its rows by id, and by org in the order in which they become visible."""

    rows: dict[int, Row] = field(default_factory=dict)
    archive: dict[int, Row] = field(default_factory=dict)
    dead: dict[int, tuple[Row, str]] = field(default_factory=dict)
    cursor: str = ""
    _due: dict[str, list[tuple[float, int]]] = field(default_factory=dict)

    def put(self, row: Row) -> None:
        self.rows[row.msg_id] = row
        self.move(row, row.visible_at)

    def move(self, row: Row, visible_at: float) -> None:
        row.visible_at = visible_at
        heapq.heappush(self._due.setdefault(row.org, []), (visible_at, row.msg_id))

    def orgs_due(self, now: float) -> Iterator[str]:
        """Orgs with something visible."""
        for org in sorted(self._due):
            if self._first_due(org, now) is not None:
                yield org

    def has_due(self, org: str, now: float) -> bool:
        return self._first_due(org, now) is not None

    def take(self, org: str, count: int, now: float, hidden_until: float) -> list[Row]:
        """Read up to `count`: the first to become visible first."""
        taken: list[Row] = []
        while len(taken) < count and (row := self._first_due(org, now)) is not None:
            heapq.heappop(self._due[org])
            row.read_ct += 1
            row.read_at = now
            self.move(row, hidden_until)
            taken.append(row)
        return taken

    def _first_due(self, org: str, now: float) -> Row | None:
        due = self._due.get(org, [])
        while due:
            visible_at, msg_id = due[0]
            row = self.rows.get(msg_id)
            if row is not None and row.visible_at == visible_at:
                return row if visible_at <= now else None
            heapq.heappop(due)
        self._due.pop(org, None)
        return None
