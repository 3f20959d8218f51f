"""Keep the slot and the deliveries alive. Who hosts this coroutine is composition: see below."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.errors import FunctionMissing
from fairlease.model import Heartbeat

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from fairlease.drain.lease import Lease, Snapshot
    from fairlease.drain.mode import Mode
    from fairlease.drain.setup import RunSetup
    from fairlease.rpc import Rpc

BEATS_PER_TTL = 3
# A renewal that overlapped a claim, or failed, is repeated after this share of the interval.
REPEAT_SHARE = 0.1
RETRY_SHARE = 0.25
# How long the end of a run waits for the thread; it is a daemon and holds nothing (seconds).
JOIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Beat:
    """One renewal as the engine hears of it; `answer` None means that it failed."""

    snapshot: Snapshot
    answer: Heartbeat | None
    error: str = ""
    believed: bool = True
    function_missing: bool = False


@dataclass(slots=True)
class Renewal:
    """Renews the slot and extends the deliveries, every third of the TTL."""

    setup: RunSetup
    lease: Lease
    mode: Mode
    rpc: Rpc
    report: Callable[[Beat], None]
    heartbeat_known: bool = True

    async def keep(self) -> None:
        """Until cancelled, or the run is given up. Never raises for a call that failed."""
        interval = self.setup.knobs.org_slot_lease_ttl_seconds / BEATS_PER_TTL
        pause = interval
        while True:
            await self.setup.clock.sleep(pause)
            if self.lease.given_up:
                return
            sent_at = self.setup.clock.monotonic()
            share = await self.beat()
            took = self.setup.clock.monotonic() - sent_at
            pause = max(interval * REPEAT_SHARE, interval * share - took)

    async def beat(self) -> float:
        """Renew once; returns the share of the interval after which it is due again."""
        before = self.lease.snapshot
        if before.queue is None:
            return 1.0
        # The run itself asks first, before it claims.
        self.heartbeat_known &= self.mode.knows("heartbeat_org_slot")
        sent_at = self.setup.clock.monotonic()
        try:
            answer = await self._call(before, before.queue)
        except FunctionMissing as error:
            if not self.heartbeat_known:
                # Nor is the older renewal there: the slot lapses, and asking more often is no help.
                self.report(Beat(before, None, str(error)))
                return 1.0
            self.heartbeat_known = False
            self.report(Beat(before, None, function_missing=True))
            return REPEAT_SHARE
        except Exception as error:  # noqa: BLE001 - the lease must outlive any fault of a client
            self.report(Beat(before, None, str(error)))
            return RETRY_SHARE
        believed = (
            not before.claim_on_the_wire and before.generation == self.lease.snapshot.generation
        )
        self._write(before, answer, sent_at, believed=believed)
        self.report(Beat(before, answer, believed=believed))
        return 1.0 if believed else REPEAT_SHARE

    def _write(
        self, before: Snapshot, answer: Heartbeat, sent_at: float, *, believed: bool
    ) -> None:
        """Written here and not through the loop: a blocked loop must not think itself lapsed."""
        for delivery in before.deliveries:
            if delivery.msg_id in answer.extended and delivery in self.lease.extended_at:
                self.lease.extended_at[delivery] = sent_at
        if believed and answer.slot_alive:
            self.lease.renewed_at = max(self.lease.renewed_at, sent_at)
        elif believed:
            self.lease.lost_holder = before.holder

    async def _call(self, snapshot: Snapshot, queue: str) -> Heartbeat:
        knobs = self.setup.knobs
        ttl = knobs.org_slot_lease_ttl_seconds
        seconds = self.setup.call_seconds()
        if not self.heartbeat_known:
            alive = await self.rpc.renew_org_slot(
                queue, snapshot.holder, ttl, timeout_seconds=seconds
            )
            return Heartbeat(slot_alive=alive)
        return await self.rpc.heartbeat_org_slot(
            queue,
            snapshot.holder,
            ttl,
            knobs.visibility_timeout_seconds,
            snapshot.deliveries,
            timeout_seconds=seconds,
        )


Hear = Callable[[Beat], None]
RenewalFor = Callable[["Rpc", Hear], Renewal]
RenewalHost = Callable[[RenewalFor, Hear], AbstractAsyncContextManager[None]]


def in_task(rpc: Rpc) -> RenewalHost:
    """As a task of the running loop: for virtual time, where there are no threads."""

    @contextlib.asynccontextmanager
    async def host(renewal_for: RenewalFor, hear: Hear) -> AsyncIterator[None]:
        task = asyncio.create_task(renewal_for(rpc, hear).keep())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    return host


def in_thread(connect: Callable[[], Awaitable[Rpc]]) -> RenewalHost:
    """In a thread with its own loop and its own client: a handler that blocks cannot stop it."""

    @contextlib.asynccontextmanager
    async def host(renewal_for: RenewalFor, hear: Hear) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def report(beat: Beat) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
                loop.call_soon_threadsafe(hear, beat)

        ended = asyncio.Event()

        def end() -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ended.set)

        thread = _RenewalThread(connect, renewal_for, report, end)
        thread.start()
        try:
            yield
        finally:
            thread.stop()
            # Not joined in a thread of the loop's pool: handlers may keep all of those for ever.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), JOIN_SECONDS)
                thread.join()  # it is at its last line

    return host


class _RenewalThread(threading.Thread):
    def __init__(
        self,
        connect: Callable[[], Awaitable[Rpc]],
        renewal_for: RenewalFor,
        report: Hear,
        end: Callable[[], None],
    ) -> None:
        super().__init__(name="fairlease-renewal", daemon=True)
        self._connect = connect
        self._renewal_for = renewal_for
        self._report = report
        self._end = end
        self._stopping = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None

    def run(self) -> None:
        try:
            with contextlib.suppress(asyncio.CancelledError):
                asyncio.run(self._keep())
        finally:
            self._end()

    def stop(self) -> None:
        self._stopping.set()
        if self._loop is not None and self._main is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._main.cancel)

    async def _keep(self) -> None:
        self._main = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        if self._stopping.is_set():
            return
        rpc = await self._connect()
        try:
            await self._renewal_for(rpc, self._report).keep()
        finally:
            await rpc.aclose()
