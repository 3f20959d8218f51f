"""One run, from a poke to its end: claim while the budget allows and work is there, then let go."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from fairlease.drain.batch import batch_at_a_time
from fairlease.drain.claim import Claiming
from fairlease.drain.flight import InFlight
from fairlease.drain.handle import STOPPING, Handling
from fairlease.drain.lease import Lease, holder_prefix
from fairlease.drain.mode import Mode
from fairlease.drain.quantum import Quantum
from fairlease.drain.refill import continuous_refill
from fairlease.drain.release import Releasing
from fairlease.drain.renew import Hear, Renewal, RenewalHost
from fairlease.drain.rotate import FAILURES_THAT_END
from fairlease.drain.settle import Settling
from fairlease.drain.watch import hear
from fairlease.errors import CallRefused, FunctionMissing, RpcError
from fairlease.events import HeartbeatFailed, RunEnded, RunStarted
from fairlease.pacing import PollingDelay
from fairlease.settings import without_heartbeats

if TYPE_CHECKING:
    from fairlease.drain.setup import RunSetup
    from fairlease.model import ClaimAnswer
    from fairlease.rpc import Rpc


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run did; `still_running` are message ids left to their visibility timeout."""

    run_id: str
    reason: str
    messages: int
    claims: int
    most_in_flight: int
    seconds: float
    degraded: tuple[str, ...] = ()
    still_running: tuple[int, ...] = ()


@dataclass(slots=True)
class Drain:
    """The state of one run: its parts, and what both drivers keep between their steps."""

    setup: RunSetup
    renewal: RenewalHost
    lease: Lease = field(init=False)
    mode: Mode = field(init=False)
    in_flight: InFlight = field(init=False)
    handling: Handling = field(init=False)
    settling: Settling = field(init=False)
    claiming: Claiming = field(init=False)
    releasing: Releasing = field(init=False)
    quantum: Quantum = field(init=False)
    delay: PollingDelay = field(init=False)
    # The held org takes no more for now, by the last pinned answer.
    org_is_full: bool = False
    # The last reason for which a top-up was skipped, and the last holder whose loss was said.
    skipped: str | None = None
    lost_holder_said: str | None = None
    # When the database suggests to ask again, in seconds; of the last probe.
    retry_after_seconds: float | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        setup, knobs = self.setup, self.setup.knobs
        prefix = holder_prefix(setup.name, setup.dice)
        self.lease = Lease(prefix, knobs.org_slot_lease_ttl_seconds)
        self.mode = Mode(setup.run_id, setup.observe)
        self.in_flight = InFlight(self.lease)
        self.handling = Handling(setup, self.lease, self.mode, self.in_flight)
        self.settling = Settling(setup, self.lease, self.mode, self.in_flight)
        self.claiming = Claiming(
            setup, self.lease, self.mode, self.in_flight, self.handling, self.settling
        )
        self.releasing = Releasing(setup, self.lease)
        self.quantum = Quantum(knobs.org_slot_stream_quantum_refills, knobs.drain_concurrency)
        self.delay = PollingDelay.from_knobs(knobs, setup.dice)

    @property
    def n(self) -> int:
        return self.setup.knobs.drain_concurrency

    async def run(self) -> RunReport:
        """Drain until there is nothing to do, no time, or no way."""
        setup = self.setup
        started = setup.clock.monotonic()
        refill = setup.knobs.refills_continuously
        driver = continuous_refill if refill else batch_at_a_time
        left = setup.budget.claim_until - started
        setup.observe(RunStarted(setup.run_id, setup.queues, driver.__name__, left))
        reason = "failed"
        try:
            async with self.renewal(self._renewal_with, partial(hear, self)):
                reason = await driver(self) if await self._learn_mode() else "unreachable"
                await self.releasing.release()
        finally:
            self.handling.close()
            report = self._report(reason, setup.clock.monotonic() - started)
        return report

    def stop(self) -> None:
        """Claim no more; what a claim on the wire brings is given back, work in flight finishes."""
        self.claiming.stopping = True
        self._stop.set()

    def cancel_handlers(self) -> None:
        """The grace is over: tell the handlers to end; those that do are given back."""
        for flight in tuple(self.in_flight.running):
            self.handling.cancel(flight, STOPPING)

    def must_end(self) -> str | None:
        """Why this run claims no more, or None."""
        if self._stop.is_set():
            return "stopping"
        if not self.setup.budget.allows_claim(self.setup.clock.monotonic()):
            return "budget"
        return None

    def begin_stream(self, queue: str, answer: ClaimAnswer) -> None:
        """An unpinned claim brought work."""
        self.quantum.begin(queue, answer.org or "")
        self.quantum.count(len(answer.messages))
        self.org_is_full = False
        self.skipped = None
        self.delay.after_work()

    async def pause(self, seconds: float) -> None:
        """Wait, unless the run is stopped first."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    async def _learn_mode(self) -> bool:
        """Before anything is hidden: can this database extend messages? False: unreachable."""
        setup = self.setup
        for failures in range(1, FAILURES_THAT_END + 1):
            try:
                await setup.rpc.heartbeat_org_slot(
                    setup.queues[0],
                    self.lease.holder,
                    setup.knobs.org_slot_lease_ttl_seconds,
                    setup.knobs.visibility_timeout_seconds,
                    [],
                    timeout_seconds=setup.call_seconds(),
                )
            except FunctionMissing:
                self._work_without_heartbeats()
            except CallRefused:
                return True  # this queue is refused where it is claimed from; others may work
            except RpcError as error:
                setup.observe(HeartbeatFailed(setup.run_id, self.lease.holder, str(error)))
                if failures < FAILURES_THAT_END:
                    await self.pause(self.delay.after_error())
                continue
            return True
        return False

    def _work_without_heartbeats(self) -> None:
        """Nothing is claimed yet, so the visibility timeout can still cover a whole batch."""
        self.mode.latch("heartbeat_org_slot")
        setup = self.setup
        setup.knobs = without_heartbeats(setup.knobs, setup.visibility_is_set)
        self.quantum.n = self.n

    def _renewal_with(self, rpc: Rpc, report: Hear) -> Renewal:
        known = self.mode.knows("heartbeat_org_slot")
        return Renewal(self.setup, self.lease, rpc, report, heartbeat_known=known)

    def _report(self, reason: str, seconds: float) -> RunReport:
        still = tuple(sorted(flight.message.msg_id for flight in self.in_flight.running))
        report = RunReport(
            run_id=self.setup.run_id,
            reason=reason,
            messages=self.claiming.messages,
            claims=self.claiming.claims,
            most_in_flight=self.in_flight.most,
            seconds=seconds,
            degraded=tuple(sorted(self.mode.missing)),
            still_running=still,
        )
        self.setup.observe(
            RunEnded(report.run_id, reason, report.messages, report.claims, seconds, still)
        )
        return report
