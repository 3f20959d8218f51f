"""One claim: an answer, or an error that says whether messages may be hidden now."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlease.drain.flight import Flight
from fairlease.drain.settle import outcomes
from fairlease.errors import (
    CallRefused,
    FunctionMissing,
    RpcError,
    TransientError,
    Unauthorized,
)
from fairlease.events import ClaimAnswered, ClaimFailed, PinViolated, QueueRefused
from fairlease.model import ClaimStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlease.drain.flight import InFlight
    from fairlease.drain.handle import Handling
    from fairlease.drain.lease import Lease
    from fairlease.drain.mode import Mode
    from fairlease.drain.settle import Settling
    from fairlease.drain.setup import RunSetup
    from fairlease.model import ClaimAnswer

# `settle_and_claim` returns one value, a plain claim a set that PostgREST may cut at max-rows.
MOST_PER_CLAIM = 500
MOST_PER_PLAIN_CLAIM = 100
# From this many messages on, starting them all would hold up the loop longer than a round trip.
LARGE_CLAIM = 16
# So many claims in a row that failed in a way that may pass end the run; cron tries again.
FAILURES_THAT_END = 3
#: The org of messages whose answer names none; a pinned claim for it finds nothing.
NAMELESS = "(unresolved)"

#: The answers of a database that took nothing: it says so, and newer ones leave no slot behind.
NOTHING_TAKEN = (ClaimStatus.NO_DEMAND, ClaimStatus.ORG_CAPACITY)


@dataclass(slots=True)
class Claiming:
    """Sends claims, starts what they bring, and keeps the lease's snapshot true."""

    setup: RunSetup
    lease: Lease
    mode: Mode
    in_flight: InFlight
    handling: Handling
    settling: Settling
    queues: list[str] = field(init=False)
    claims: int = 0
    messages: int = 0
    # Claims in a row that failed in a way that may pass; each success starts anew.
    failures: int = 0
    # Why the run was told to claim no more.
    stopping: str | None = None

    def __post_init__(self) -> None:
        self.queues = list(self.setup.queues)

    def refusal(self) -> str | None:
        """Why nothing may be claimed any more in this run, or None."""
        if self.stopping is not None:
            return self.stopping
        if not self.setup.budget.allows_claim(self.setup.clock.monotonic()):
            return "budget"
        return "failures" if self.failures >= FAILURES_THAT_END else None

    async def claim(
        self, queue: str, n: int, *, pin: str | None = None, ended: Sequence[Flight] = ()
    ) -> ClaimAnswer | None:
        """Settle `ended` and claim up to `n`, in one round trip where the database can.

        None where nothing may be claimed any more. Raises `RpcError` after saying so, and
        `ValueError` for an `n` that is no whole number above zero; `ended` is settled all the same.
        """
        pending = self.settling.sendable(ended)
        together = self.mode.knows("settle_and_claim")
        if self.refusal() is not None or not together:
            await self.settling.settle(queue, pending)
            pending = []
            # Asked after the settle: one that meets a bad gateway may outlast the budget.
            if self.refusal() is not None:
                return None
        check_shortfall(n)
        was_free = self.lease.claim_sent(queue)
        sent_at = self.setup.clock.monotonic()
        try:
            answer = await self._send(queue, n, pin, pending, together=together)
        except RpcError as error:
            if together and isinstance(error, FunctionMissing):
                self.mode.latch("settle_and_claim")
                if was_free:
                    self.lease.nothing_taken(queue)
                return await self.claim(queue, n, pin=pin, ended=pending)
            self._failed(queue, error, was_free=was_free)
            if together:
                await self.settling.settle(queue, pending)
            raise
        self.failures = 0
        if together:
            self.settling.accept(queue, pending, answer)
        self._receive(queue, pin, answer, sent_at, was_free=was_free)
        return answer

    async def _send(
        self, queue: str, n: int, pin: str | None, pending: list[Flight], *, together: bool
    ) -> ClaimAnswer:
        self.claims += 1
        rpc, seconds = self.setup.rpc, self.setup.call_seconds()
        most = MOST_PER_CLAIM if together else MOST_PER_PLAIN_CLAIM
        request = self.settling.request(queue, min(n, most), pin)
        try:
            if together:
                return await rpc.settle_and_claim(
                    request, outcomes(pending), timeout_seconds=seconds
                )
            return await rpc.claim_org_slot_and_read(request, timeout_seconds=seconds)
        finally:
            # Also where it ends in no answer: renewals would not be believed any more.
            self.lease.claim_answered()

    def _failed(self, queue: str, error: RpcError, *, was_free: bool) -> None:
        unknown = outcome_is_unknown(error)
        self.failures += 0 if isinstance(error, FunctionMissing | CallRefused) else 1
        if was_free and not unknown:
            self.lease.nothing_taken(queue)
        self.setup.observe(
            ClaimFailed(self.setup.run_id, queue, str(error), error.code, outcome_unknown=unknown)
        )

    def refuse_queue(self, queue: str, error: RpcError) -> None:
        """Permanent for this queue in this run; the others go on."""
        self.queues.remove(queue)
        self.setup.observe(QueueRefused(self.setup.run_id, queue, str(error)))

    def _receive(
        self, queue: str, pin: str | None, answer: ClaimAnswer, sent_at: float, *, was_free: bool
    ) -> None:
        if was_free and answer.status in NOTHING_TAKEN:
            self.lease.nothing_taken(queue)
        org = answer.org
        if answer.status is ClaimStatus.CLAIMED:
            org = org or pin or NAMELESS
            if pin is not None and org != pin:
                # They are hidden already: keeping them is safer than waiting for their timeout.
                self.setup.observe(PinViolated(self.setup.run_id, queue, pin, org))
            else:
                self.lease.hold(queue, org, sent_at)
            self._take_off(queue, org, answer, sent_at)
        self.setup.observe(
            ClaimAnswered(
                self.setup.run_id,
                queue,
                answer.status,
                answer.cause,
                org,
                pin is not None,
                len(answer.messages),
                self.setup.clock.monotonic() - sent_at,
            )
        )

    def _take_off(self, queue: str, org: str, answer: ClaimAnswer, sent_at: float) -> None:
        flights = [Flight(queue, org, message) for message in answer.messages]
        self.messages += len(flights)
        self.in_flight.add(flights, sent_at)
        if len(flights) < LARGE_CLAIM:
            self._begin(flights)
        else:
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._begin_by_halves, flights)

    def _begin_by_halves(self, flights: list[Flight]) -> None:
        """In later steps of the loop, so that what is to be settled goes out first.

        While the second half begins, the ends of the first are on the wire.
        """
        half = len(flights) // 2
        self._begin(flights[:half])
        asyncio.get_running_loop().call_soon(self._begin, flights[half:])

    def _begin(self, flights: list[Flight]) -> None:
        for flight in flights:
            if self.refusal() is not None:
                self.handling.give_back(flight)
            else:
                self.handling.start(flight)


def outcome_is_unknown(error: RpcError) -> bool:
    """Whether the claim may have taken a slot and hidden messages all the same."""
    if isinstance(error, TransientError):
        return error.took_effect is not False
    return not isinstance(error, FunctionMissing | CallRefused | Unauthorized)


def check_shortfall(n: int) -> None:
    """A number that is not whole would reach the wire as whatever the encoder makes of it."""
    if type(n) is not int or n < 1:
        raise ValueError(f"a claim for n={n!r} messages; a whole number above zero is needed")
