"""Tell the database what became of each delivery: once, or until it is answered."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.errors import FunctionMissing, RpcError, TransientError, Unauthorized
from fairlease.events import OutcomeChanged, SettleAnswered, SettleFailed
from fairlease.model import ClaimRequest, DeadLetter, Done, Outcome, SettleResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlease.drain.flight import Flight, InFlight
    from fairlease.drain.lease import Lease
    from fairlease.drain.mode import Mode
    from fairlease.drain.setup import RunSetup
    from fairlease.model import ClaimAnswer

# Between repeats of a settle that met a bad gateway, in seconds; doubled up to the second number.
FIRST_REPEAT_SECONDS = 0.1
LONGEST_REPEAT_SECONDS = 5.0


@dataclass(slots=True)
class Settling:
    """Settles are idempotent and fenced, so they are repeated while their message is ours."""

    setup: RunSetup
    lease: Lease
    mode: Mode
    in_flight: InFlight

    def request(self, queue: str, n: int, pin: str | None = None) -> ClaimRequest:
        """The claim arguments of this run; `n = 0` settles only."""
        knobs = self.setup.knobs
        return ClaimRequest(
            queue=queue,
            holder=self.lease.holder,
            n=n,
            sleep_seconds=knobs.visibility_timeout_seconds,
            lease_ttl_seconds=knobs.org_slot_lease_ttl_seconds,
            max_per_org=knobs.org_slot_max_per_org,
            global_cap=knobs.org_slot_global_cap,
            pin_org=pin,
        )

    async def settle(self, queue: str, ended: Sequence[Flight]) -> None:
        """Return when each was answered, refused, or left to its visibility timeout."""
        pending = self.sendable(ended)
        failures = 0
        while pending:
            if not self.mode.knows("settle_and_claim"):
                await self._archive_successes(queue, pending)
                return
            try:
                answer = await self.setup.rpc.settle_and_claim(
                    self.request(queue, 0),
                    outcomes(pending),
                    timeout_seconds=self.setup.call_seconds(),
                )
            except FunctionMissing:
                self.mode.latch("settle_and_claim")
            except (TransientError, Unauthorized) as error:
                final = self._redelivered(pending)
                self._failed(queue, pending, error, final=final)
                if final:
                    return
                await self._pause(failures)
                failures += 1
            except RpcError as error:
                await self._one_at_a_time(queue, pending, error)
                return
            else:
                self.accept(queue, pending, answer)
                return

    def sendable(self, ended: Sequence[Flight]) -> list[Flight]:
        """Without those that another delivery owns: of them nothing is said."""
        lost = [flight for flight in ended if flight.lost]
        self.in_flight.settled(lost)
        return [flight for flight in ended if not flight.lost]

    def accept(self, queue: str, pending: list[Flight], answer: ClaimAnswer) -> None:
        run_id, observe = self.setup.run_id, self.setup.observe
        for settled in answer.settled:
            msg_id, result, note = settled.msg_id, settled.result, settled.note
            observe(SettleAnswered(run_id, queue, msg_id, result, note))
            if result is SettleResult.REFUSED:
                observe(SettleFailed(run_id, queue, (msg_id,), f"refused: {note}", final=True))
            elif note:
                observe(OutcomeChanged(run_id, queue, msg_id, note))
        self.in_flight.settled(pending)

    async def _one_at_a_time(self, queue: str, pending: list[Flight], error: RpcError) -> None:
        """One bad outcome must not keep its neighbours from being settled."""
        if len(pending) == 1:
            self._failed(queue, pending, error, final=True)
            return
        for flight in pending:
            await self.settle(queue, [flight])

    async def _archive_successes(self, queue: str, pending: list[Flight]) -> None:
        """An older database: success is archived, unfenced; all else comes back by itself."""
        await asyncio.gather(*(self._archive(queue, flight) for flight in pending))

    async def _archive(self, queue: str, flight: Flight) -> None:
        result, note = "left", "this database settles nothing but success"
        if isinstance(flight.outcome, DeadLetter):
            note = f"stays in its queue: {flight.outcome.reason}"
        failures = 0
        while isinstance(flight.outcome, Done):
            try:
                gone = not await self.setup.rpc.archive(
                    queue, flight.message.msg_id, timeout_seconds=self.setup.call_seconds()
                )
            except RpcError as error:
                transient = isinstance(error, TransientError | Unauthorized)
                final = not transient or self._redelivered([flight])
                self._failed(queue, [flight], error, final=final)
                if final:
                    return
                await self._pause(failures)
                failures += 1
            else:
                result, note = ("gone" if gone else "applied"), "unfenced"
                break
        msg_id = flight.message.msg_id
        self.setup.observe(SettleAnswered(self.setup.run_id, queue, msg_id, result, note))
        self.in_flight.settled([flight])

    def _redelivered(self, pending: list[Flight]) -> bool:
        """Nobody has extended these for a whole timeout: they are someone else's by now."""
        now = self.setup.clock.monotonic()
        extended = (self.lease.extended_at.get(f.message.delivery, now) for f in pending)
        timeout = self.setup.knobs.visibility_timeout_seconds
        late = now - max(extended) > timeout or now >= self.setup.budget.isolate_end
        return late or self.in_flight.abandoned.is_set()

    async def _pause(self, failures: int) -> None:
        longest = min(LONGEST_REPEAT_SECONDS, FIRST_REPEAT_SECONDS * 2.0 ** min(failures, 16))
        seconds = self.setup.dice.uniform(longest / 2, longest)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.in_flight.abandoned.wait(), seconds)

    def _failed(self, queue: str, pending: list[Flight], error: RpcError, *, final: bool) -> None:
        ids = tuple(flight.message.msg_id for flight in pending)
        self.setup.observe(SettleFailed(self.setup.run_id, queue, ids, str(error), final))
        if final:
            self.in_flight.settled(pending)


def outcomes(flights: Sequence[Flight]) -> list[Outcome]:
    """The outcome of each; a flight that has ended always has one."""
    return [flight.outcome for flight in flights if flight.outcome is not None]
