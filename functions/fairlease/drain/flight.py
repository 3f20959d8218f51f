"""A message in flight: from the claim that returned it to the settle that was answered."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlease.clock import Clock
    from fairlease.drain.lease import Lease
    from fairlease.messages.context import Context
    from fairlease.model import Delivery, Message, Outcome


@dataclass(slots=True, eq=False)
class Flight:
    """One delivery on its way.

    `cancel_reason` is why its handler was first told to end, and decides about the outcome;
    `told` is the last reason: a handler that ignored a timeout is told again at the end.
    """

    queue: str
    org: str
    message: Message
    task: asyncio.Task[None] | None = None
    context: Context | None = None
    outcome: Outcome | None = None
    cancel_reason: str | None = None
    told: str | None = None
    # Its settle is on the wire, or about to be: what a heartbeat says of it is ignored.
    settling: bool = False
    # Another delivery has begun: nothing is said about this one any more.
    lost: bool = False

    def cancel(self, reason: str) -> bool:
        """Tell the handler to end; False if it was told so before or has ended."""
        if self.told == reason or self.outcome is not None:
            return False
        self.told = reason
        self.cancel_reason = self.cancel_reason or reason
        if self.context is not None:
            self.context.cancelled = True
            # Before its first step a task would die without an outcome; `handle` looks instead.
            if self.task is not None:
                self.task.cancel(reason)
        return True


@dataclass(slots=True)
class InFlight:
    """The set of flights, running and ended, and a way to wait for the next end.

    The lease sees every change at once: what is in here is extended by the heartbeat.
    """

    lease: Lease
    clock: Clock
    running: set[Flight] = field(default_factory=set)
    # Set when what still runs is left to its visibility timeout: nobody waits for it any more.
    abandoned: asyncio.Event = field(default_factory=asyncio.Event)
    # When work last began, ended or said that it moves on; an instant of the clock, in seconds.
    progress_at: float = -math.inf
    _ended: list[Flight] = field(default_factory=list)
    _settling: set[Flight] = field(default_factory=set)
    # What a heartbeat extends, in the order of the claims.
    _tracked: dict[Flight, Delivery] = field(default_factory=dict)
    _something_ended: asyncio.Event = field(default_factory=asyncio.Event)
    most: int = 0

    def __len__(self) -> int:
        return len(self.running) + len(self._ended) + len(self._settling)

    def add(self, flights: list[Flight], claim_sent_at: float) -> None:
        for flight in flights:
            delivery = flight.message.delivery
            self.lease.extended_at[delivery] = claim_sent_at
            self._tracked[flight] = delivery
        self.running.update(flights)
        self.most = max(self.most, len(self))
        self.progress()
        self._track()

    def end(self, flight: Flight) -> None:
        self.running.discard(flight)
        self._ended.append(flight)
        self._something_ended.set()

    def take_ended(self) -> list[Flight]:
        """The flights that ended since the last call: their settle begins now."""
        ended, self._ended = self._ended, []
        self._settling.update(ended)
        for flight in ended:
            flight.settling = True
        return ended

    def reopen(self) -> None:
        """Settle again what was being settled: nobody knows whether it was said."""
        self._ended.extend(self._settling)
        self._settling.clear()

    def settled(self, flights: list[Flight]) -> None:
        """Answered, or given up: no longer ours to extend."""
        self._settling.difference_update(flights)
        for flight in flights:
            self._tracked.pop(flight, None)
            self.lease.extended_at.pop(flight.message.delivery, None)
        self.progress()
        self._track()

    def progress(self) -> None:
        self.progress_at = self.clock.monotonic()

    def lose(self, flight: Flight) -> None:
        """Another's by now: it is neither extended nor settled, but runs until its handler ends."""
        flight.lost = True
        self._tracked.pop(flight, None)
        self._track()

    def abandon(self) -> None:
        """Wait no longer for handlers that were told to end and do not."""
        self.abandoned.set()
        self._something_ended.set()

    async def something_ended(self) -> None:
        """Ends that fall into one step of the loop are seen together; or nobody waits any more."""
        if not self._ended and not self.abandoned.is_set():
            self._something_ended.clear()
            await self._something_ended.wait()

    def _track(self) -> None:
        self.lease.track(tuple(self._tracked.values()))
