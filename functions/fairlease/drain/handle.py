"""Run one handler to its end, whatever it raises, and keep what became of its message."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from fairlease.drain.threads import HandlerThreads
from fairlease.errors import FunctionMissing
from fairlease.events import (
    CancellationSwallowed,
    DeliveryLost,
    HandlerCancelled,
    HandlerEnded,
    HandlerStarted,
)
from fairlease.messages.context import Context
from fairlease.messages.envelope import Envelope, method_of, open_envelope
from fairlease.messages.retry import buried, judge
from fairlease.messages.sending import send
from fairlease.messages.verdicts import Dead, Verdict
from fairlease.model import DeadLetter, Done, GiveBack, Outcome, SnoozeUntil

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from fairlease.drain.flight import Flight, InFlight
    from fairlease.drain.lease import Lease
    from fairlease.drain.mode import Mode
    from fairlease.drain.setup import RunSetup
    from fairlease.messages.registry import Handler
    from fairlease.model import Heartbeat, NewMessage, Sent

T = TypeVar("T")

TIMED_OUT = "timeout"
ISOLATE_ENDS = "isolate_ends"
LOST = "lost"
LEASE_LOST = "lease_lost"
STOPPING = "stopping"
STALLED = "stalled"

# A suspect delivery whose beginning cannot be recorded is looked at again this much later.
UNRECORDED_RETRY_MS = 5_000

_log = logging.getLogger("fairlease.handler")


@dataclass(slots=True)
class Handling:
    """Starts and cancels the handlers of one run."""

    setup: RunSetup
    lease: Lease
    mode: Mode
    in_flight: InFlight
    threads: HandlerThreads = field(init=False)

    def __post_init__(self) -> None:
        self.threads = HandlerThreads(self.setup.knobs.drain_concurrency)

    def start(self, flight: Flight) -> None:
        """Start the handler, or end the flight at once if it must not or cannot run."""
        crashes = flight.message.crashes
        if crashes > self.setup.knobs.max_crashes:
            reason = f"crashed: {crashes} deliveries began and never ended"
            method = method_of(flight.message.body, self.setup.handlers)
            self._end(flight, DeadLetter(flight.message.delivery, reason=reason), method, 0.0)
            return
        try:
            envelope = open_envelope(flight.message.body, self.setup.handlers)
        except Dead as dead:
            self._end(flight, buried(flight.message.delivery, dead), "", 0.0, dead)
            return
        name = f"{envelope.handler.method} of message {flight.message.msg_id}"
        flight.task = asyncio.create_task(self._carry(flight, envelope), name=name)

    def give_back(self, flight: Flight) -> None:
        """End a flight whose handler never started."""
        self._end(flight, GiveBack(flight.message.delivery), "", 0.0)

    def cancel(self, flight: Flight, reason: str) -> None:
        if flight.cancel(reason):
            self.setup.observe(
                HandlerCancelled(
                    self.setup.run_id, flight.queue, flight.org, flight.message.msg_id, reason
                )
            )

    def lose(self, flight: Flight, why: str) -> None:
        """Another's by now, or gone: its handler ends, or never starts, and nothing is settled."""
        if not flight.lost:
            self.in_flight.lose(flight)
            self.setup.observe(
                DeliveryLost(self.setup.run_id, flight.queue, flight.message.msg_id, why)
            )
            self.cancel(flight, LOST)

    def hear(self, flight: Flight, answer: Heartbeat) -> None:
        """What a heartbeat that asked for this delivery said of it."""
        if flight.message.msg_id in answer.lost:
            self.lose(flight, "another delivery has begun")
        elif flight.message.msg_id in answer.gone:
            self.lose(flight, "the message is gone")

    async def _carry(self, flight: Flight, envelope: Envelope) -> None:
        handler = envelope.handler
        if flight.message.suspect and not await self._begin_is_recorded(flight):
            later = SnoozeUntil(flight.message.delivery, after_ms=UNRECORDED_RETRY_MS)
            self._end(flight, later, handler.method, 0.0)
            return
        if flight.cancel_reason is not None:
            self.give_back(flight)
            return
        clock = self.setup.clock
        started = clock.monotonic()
        deadline, why = self._deadline(started, handler)
        flight.context = self._context(flight, envelope, deadline)
        timer = None
        if deadline < math.inf:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(max(0.0, deadline - started), self.cancel, flight, why)
        self._say_started(flight, handler.method)
        raised: BaseException | None = None
        try:
            if handler.is_async:
                await handler.function(envelope.arguments, flight.context)  # type: ignore[misc]
            else:
                made = await self.threads.run(handler.function, envelope.arguments, flight.context)
                if inspect.isawaitable(made):  # a decorator hid that it is a coroutine function
                    await made
        except BaseException as error:  # noqa: BLE001 - also SystemExit: it is the handler's
            raised = error
        if timer is not None:
            timer.cancel()
        seconds = clock.monotonic() - started
        if raised is None and flight.told is not None:
            self.setup.observe(
                CancellationSwallowed(
                    self.setup.run_id, flight.queue, flight.message.msg_id, flight.told
                )
            )
        outcome = self._outcome(flight, handler, raised, round(seconds * 1000))
        self._end(flight, outcome, handler.method, seconds, raised)

    def _say_started(self, flight: Flight, method: str) -> None:
        message = flight.message
        queued = None
        sent_at = message.enqueued_at
        if message.read_ct == 1 and sent_at is not None and sent_at.tzinfo is not None:
            queued = (self.setup.clock.now() - sent_at).total_seconds()
        self.setup.observe(
            HandlerStarted(
                self.setup.run_id,
                flight.queue,
                flight.org,
                method,
                message.msg_id,
                message.attempt,
                queued,
                message.headers or {},
            )
        )

    async def _begin_is_recorded(self, flight: Flight) -> bool:
        """An earlier delivery never ended; if this one kills its isolate too, it must count."""
        if not self.mode.knows("heartbeat_org_slot"):
            return True
        knobs = self.setup.knobs
        try:
            answer = await self.setup.rpc.heartbeat_org_slot(
                flight.queue,
                self.lease.holder,
                knobs.org_slot_lease_ttl_seconds,
                knobs.visibility_timeout_seconds,
                [flight.message.delivery],
                timeout_seconds=self.setup.call_seconds(),
            )
        except FunctionMissing:
            self.mode.latch("heartbeat_org_slot")
        except Exception:  # noqa: BLE001 - a fault of a client must not keep its message
            return False
        else:
            self.hear(flight, answer)
        return True

    def _deadline(self, now: float, handler: Handler) -> tuple[float, str]:
        own = now + (handler.timeout_seconds or self.setup.knobs.handler_timeout_seconds)
        last = self.setup.budget.handlers_until
        return (own, TIMED_OUT) if own <= last else (last, ISOLATE_ENDS)

    def _context(self, flight: Flight, envelope: Envelope, deadline: float) -> Context:
        message = flight.message
        ids = {
            "run_id": self.setup.run_id,
            "queue": flight.queue,
            "org": flight.org,
            "method": envelope.handler.method,
            "msg_id": message.msg_id,
        }
        return Context(
            org=flight.org,
            queue=flight.queue,
            method=envelope.handler.method,
            msg_id=message.msg_id,
            attempt=message.attempt,
            clock=self.setup.clock,
            deadline=deadline,
            enqueued_at=message.enqueued_at,
            key=envelope.key,
            headers=message.headers or {},
            on_progress=self.in_flight.progress,
            sender=self._send,
            inbox=self._take_key,
            log=logging.LoggerAdapter(_log, ids),
        )

    async def _send(self, queue: str, messages: Sequence[NewMessage]) -> Sent:
        setup = self.setup
        return await _whole(
            send(
                setup.rpc,
                queue,
                messages,
                timeout_seconds=setup.call_seconds(),
                size_limit_bytes=setup.knobs.message_size_limit_bytes,
            )
        )

    async def _take_key(self, queue: str, key: str, token: str) -> bool:
        seconds = self.setup.call_seconds()
        return await _whole(self.setup.rpc.once(queue, key, token, timeout_seconds=seconds))

    def _outcome(
        self, flight: Flight, handler: Handler, raised: BaseException | None, took_ms: int
    ) -> Outcome:
        delivery = flight.message.delivery
        if raised is None:
            return Done(delivery, took_ms=took_ms)
        match flight.cancel_reason:
            case None:
                pass
            case _ if isinstance(raised, Verdict):
                pass
            case reason if reason == TIMED_OUT:
                raised = _as_cause(f"timed out after {took_ms / 1000:.1f} s", raised)
            case reason if reason == STALLED:
                raised = _as_cause(f"no progress; cancelled after {took_ms / 1000:.1f} s", raised)
            case _:
                return GiveBack(delivery, took_ms=took_ms)
        outcome = judge(
            raised,
            delivery=delivery,
            attempt=flight.message.attempt,
            policy=handler.retry,
            now=self.setup.clock.now(),
            dice=self.setup.dice,
        )
        return dataclasses.replace(outcome, took_ms=took_ms)

    def _end(
        self,
        flight: Flight,
        outcome: Outcome,
        method: str,
        seconds: float,
        raised: BaseException | None = None,
    ) -> None:
        flight.outcome = outcome
        self.in_flight.end(flight)
        self.setup.observe(
            HandlerEnded(
                self.setup.run_id,
                flight.queue,
                flight.org,
                method,
                flight.message.msg_id,
                flight.message.attempt,
                type(outcome).__name__,
                seconds,
                raised,
                flight.message.crashes,
            )
        )


async def _whole(call: Coroutine[Any, Any, T]) -> T:
    """Shielded: cut off by its handler's end, it would have no known outcome, and leak."""
    whole = asyncio.ensure_future(call)
    # Its failure is heard even where nobody awaits it any more.
    whole.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return await asyncio.shield(whole)


def _as_cause(message: str, raised: BaseException) -> BaseException:
    error = TimeoutError(message)
    error.__cause__ = raised
    return error
