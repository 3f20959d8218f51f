"""One run, from a poke to its end: claim while the budget allows and work is there, then let go."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlease.drain.batch import batch_at_a_time, run_out
from fairlease.drain.claim import FAILURES_THAT_END, Claiming
from fairlease.drain.flight import InFlight
from fairlease.drain.handle import STALLED, STOPPING, Handling
from fairlease.drain.lease import Lease, holder_prefix
from fairlease.drain.mode import Mode
from fairlease.drain.quantum import Quantum
from fairlease.drain.refill import continuous_refill
from fairlease.drain.release import Releasing
from fairlease.drain.renew import Hear, Renewal, RenewalHost
from fairlease.drain.settle import Settling
from fairlease.drain.watch import hear, keep_watch
from fairlease.drain.watchdog import WatchdogHost, no_thread
from fairlease.errors import CallRefused, ConfigurationError, FunctionMissing, RpcError
from fairlease.events import HeartbeatFailed, RunEnded, RunFailed, RunStarted
from fairlease.pacing import PollingDelay
from fairlease.settings import without_heartbeats

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from fairlease.drain.setup import RunSetup
    from fairlease.model import ClaimAnswer
    from fairlease.rpc import Rpc

    Driver = Callable[["Drain", int], Coroutine[Any, Any, str]]

# What a stop leaves of its grace for settling and releasing, and how much of that a cancelled
# handler has to end (seconds).
SETTLING_SECONDS = 10.0
ENDING_SECONDS = 5.0


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
    watchdog: WatchdogHost = no_thread
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
    # Of the last probe: when the database suggests to ask again, in seconds, and whether any claim
    # was answered at all.
    retry_after_seconds: float | None = None
    probe_was_answered: bool = False
    # Work stood still and was told to end; the run may end for another reason all the same.
    stalled: bool = False
    _timers: list[asyncio.TimerHandle] = field(default_factory=list)

    def __post_init__(self) -> None:
        setup, knobs = self.setup, self.setup.knobs
        prefix = holder_prefix(setup.name, setup.dice)
        self.lease = Lease(prefix, knobs.org_slot_lease_ttl_seconds)
        self.mode = Mode(setup.run_id, setup.observe)
        self.in_flight = InFlight(self.lease, setup.clock)
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
        """Drain until there is nothing to do, no time, or no way.

        Raises only for a fault of its own, after what was in flight has ended and was settled.
        """
        setup = self.setup
        started = setup.clock.monotonic()
        driver = continuous_refill if setup.knobs.refills_continuously else batch_at_a_time
        left = setup.budget.claim_until - started
        setup.observe(RunStarted(setup.run_id, setup.queues, driver.__name__, left))
        reason = "failed"
        try:
            async with self._kept_alive():
                reason = await self._drive(driver)
                await self._let_go()
        finally:
            self._close()
            report = self._report(reason, setup.clock.monotonic() - started)
            if report.still_running and self.stalled:
                setup.end_process("handlers stand still and do not end")
        return report

    def stop(self, grace_seconds: float | None = None) -> None:
        """Claim no more; what a claim on the wire brings is given back, work in flight finishes.

        `grace_seconds` from now the process is killed: shortly before, handlers are cancelled.
        """
        self.stop_because(STOPPING)
        if grace_seconds is not None:
            self._later(max(0.0, grace_seconds - SETTLING_SECONDS), self.cancel_handlers)

    def stop_because(self, reason: str) -> None:
        self.claiming.stopping = self.claiming.stopping or reason
        self.setup.woken.set()

    def cancel_handlers(self, reason: str = STOPPING) -> None:
        """Tell the handlers to end. Those that do are settled; the others are then abandoned."""
        self.stop_because(reason)
        self.stalled = self.stalled or reason == STALLED
        for flight in tuple(self.in_flight.running):
            self.handling.cancel(flight, reason)
        self._later(ENDING_SECONDS, self.in_flight.abandon)

    def must_end(self) -> str | None:
        """Why this run claims no more, or None."""
        return self.claiming.refusal()

    def check_tracking(self, max_in_flight: int) -> None:
        """Raise `ConfigurationError` where the set of flights would not be the one that counts."""
        parts = (self.handling, self.settling, self.claiming)
        if any(part.in_flight is not self.in_flight for part in parts):
            raise ConfigurationError("this run does not track what it has in flight; use `Drain`")
        if max_in_flight != self.n:
            raise ConfigurationError(
                f"max_in_flight={max_in_flight!r} is not the run's drain_concurrency={self.n}; "
                "leave it to the knob"
            )

    def begin_stream(self, queue: str, answer: ClaimAnswer) -> None:
        """An unpinned claim brought work."""
        self.quantum.begin(queue, answer.org or "")
        self.quantum.count(len(answer.messages))
        self.org_is_full = False
        self.skipped = None
        self.delay.after_work()

    async def pause(self, seconds: float) -> bool:
        """Wait, unless the run is woken or stopped first; whether it was."""
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(self.setup.woken.wait(), seconds)
        return False

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

    @contextlib.asynccontextmanager
    async def _kept_alive(self) -> AsyncIterator[None]:
        """Renewed, watched from the loop, and the loop from outside."""
        with self.watchdog(self.setup, self.lease):
            async with self.renewal(self._renewal_with, partial(hear, self)):
                watching = asyncio.create_task(keep_watch(self))
                try:
                    yield
                finally:
                    watching.cancel()
                    await asyncio.wait({watching})

    async def _drive(self, driver: Driver) -> str:
        try:
            return await driver(self, self.n) if await self._learn_mode() else "unreachable"
        except Exception as error:
            self.setup.observe(RunFailed(self.setup.run_id, type(error).__name__, error))
            self.stop_because("failed")
            self.in_flight.reopen()
            await run_out(self)
            await self._let_go()
            raise

    async def _let_go(self) -> None:
        """Release, unless a handler was left running: a second holder would join its message."""
        if not self.in_flight.running:
            await self.releasing.release()

    def _later(self, seconds: float, what: Callable[[], None]) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(seconds, what))

    def _close(self) -> None:
        for timer in self._timers:
            timer.cancel()
        if not self.in_flight.abandoned.is_set():
            # Only a run that was itself cancelled leaves handlers behind without having told them.
            for flight in tuple(self.in_flight.running):
                self.handling.cancel(flight, STOPPING)
        self.handling.threads.close()

    def _renewal_with(self, rpc: Rpc, report: Hear) -> Renewal:
        return Renewal(self.setup, self.lease, self.mode, rpc, report)

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
            RunEnded(
                report.run_id,
                reason,
                report.messages,
                report.claims,
                seconds,
                still,
                report.degraded,
            )
        )
        return report
