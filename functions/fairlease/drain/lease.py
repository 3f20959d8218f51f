"""What a run may hold, as one snapshot that the renewal can read from its own thread."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from fairlease.model import Delivery


def holder_prefix(name: str, dice: random.Random) -> str:
    """`name/host/pid/random`: unique per run, also after a restart with the same host and pid."""
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:60]
    return f"{name}/{host}/{os.getpid()}/{dice.getrandbits(48):012x}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Replaced whole, never changed. An odd generation means that a claim is on the wire."""

    generation: int
    holder: str
    queue: str | None
    org: str | None
    deliveries: tuple[Delivery, ...]

    @property
    def claim_on_the_wire(self) -> bool:
        return self.generation % 2 == 1


@dataclass(slots=True)
class Lease:
    """One holder name at a time; a name is retired after any release, answered or not.

    `renewed_at` and the values of `extended_at` are monotonic seconds at which the last good call
    was *sent*. The renewal writes both from its thread; each write is one assignment.
    """

    prefix: str
    ttl_seconds: float
    renewed_at: float = -math.inf
    lost_holder: str | None = None
    extended_at: dict[Delivery, float] = field(default_factory=dict)
    maybe_held: set[str] = field(default_factory=set)
    # Set where the run is given up: the slot is to lapse, so nothing renews it any more.
    given_up: bool = False
    snapshot: Snapshot = field(init=False)
    _serial: int = 0

    def __post_init__(self) -> None:
        self.snapshot = Snapshot(0, f"{self.prefix}/0", None, None, ())

    @property
    def holder(self) -> str:
        return self.snapshot.holder

    @property
    def queue(self) -> str | None:
        return self.snapshot.queue

    @property
    def org(self) -> str | None:
        return self.snapshot.org

    @property
    def lapses_at(self) -> float:
        """When a TTL has passed since the last good renewal was sent."""
        return self.renewed_at + self.ttl_seconds

    def is_lost(self, now: float) -> bool:
        """The database said so, or no renewal has succeeded for a whole TTL."""
        if self.queue is None:
            return False
        return self.lost_holder == self.holder or now >= self.lapses_at

    def claim_sent(self, queue: str) -> bool:
        """From here on the queue may hold a slot of ours; True if it was certain that none was."""
        was_free = queue not in self.maybe_held
        self.maybe_held.add(queue)
        self._replace(generation=self.snapshot.generation + 1)
        return was_free

    def claim_answered(self) -> None:
        self._replace(generation=self.snapshot.generation + 1)

    def nothing_taken(self, queue: str) -> None:
        """The answer proves that the claim left no slot behind."""
        self.maybe_held.discard(queue)

    def hold(self, queue: str, org: str, sent_at: float) -> None:
        self.renewed_at = sent_at
        self._replace(queue=queue, org=org)

    def track(self, deliveries: tuple[Delivery, ...]) -> None:
        """The deliveries that a heartbeat extends: all that are not settled."""
        self._replace(deliveries=deliveries)

    def next_holder(self) -> None:
        """A late or repeated release of the old name must not free a live slot."""
        self._serial += 1
        self.maybe_held.clear()
        self._replace(holder=f"{self.prefix}/{self._serial}", queue=None, org=None)

    def _replace(self, **changes: object) -> None:
        self.snapshot = dataclasses.replace(self.snapshot, **changes)  # type: ignore[arg-type]
