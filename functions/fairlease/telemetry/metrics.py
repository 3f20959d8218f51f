"""An observer that counts. What it costs a message is a few additions; nothing is formatted."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlease.events import (
    ClaimAnswered,
    Degraded,
    DeliveryLost,
    FunctionStarted,
    HandlerEnded,
    HandlerStarted,
    HeartbeatFailed,
    LoopBlocked,
    RunEnded,
    RunStarted,
)
from fairlease.telemetry.counting import CountsByOrg, Histogram

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlease.events import Event

_HANDLER = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0)
_QUEUEING = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 1200.0, 3600.0)
_CLAIM = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_OUTCOMES = {
    "Done": "done",
    "RetryLater": "retry",
    "SnoozeUntil": "snooze",
    "GiveBack": "give_back",
    "DeadLetter": "dead",
}
# Of messages that name no method of this worker: senders must not make labels.
UNKNOWN_METHOD = "unknown"


Labels = tuple[str, ...]


class Metrics:
    """What one isolate has seen. Labels are tuples in the order of docs/metrics.md."""

    def __init__(self) -> None:
        self.messages = CountsByOrg()
        self.deliveries: Counter[Labels] = Counter()
        self.deliveries_lost: Counter[Labels] = Counter()
        self.claims: Counter[Labels] = Counter()
        self.heartbeats_failed: Counter[Labels] = Counter()
        self.runs: Counter[Labels] = Counter()
        self.runs_degraded: Counter[Labels] = Counter()
        self.handler_seconds = defaultdict[Labels, Histogram](partial(Histogram, _HANDLER))
        self.queueing_seconds = defaultdict[Labels, Histogram](partial(Histogram, _QUEUEING))
        self.claim_seconds = defaultdict[Labels, Histogram](partial(Histogram, _CLAIM))
        self.loop_blocked_seconds = 0.0
        # The queue that each live run claimed from last: a heartbeat names none.
        self._queue_of: dict[str, str] = {}
        self._listeners: dict[type[Any], Callable[[Any], None]] = {
            HandlerEnded: self._handler_ended,
            HandlerStarted: self._handler_started,
            ClaimAnswered: self._claim_answered,
            DeliveryLost: self._delivery_lost,
            Degraded: self._degraded,
            HeartbeatFailed: self._heartbeat_failed,
            FunctionStarted: self._function_started,
            LoopBlocked: self._loop_blocked,
            RunStarted: self._run_started,
            RunEnded: self._run_ended,
        }

    def observe(self, event: Event) -> None:
        listener = self._listeners.get(type(event))
        if listener is not None:
            listener(event)

    def take_loop_blocked(self) -> float:
        """The longest time, in seconds, that the loop was blocked since the last look."""
        longest, self.loop_blocked_seconds = self.loop_blocked_seconds, 0.0
        return longest

    def _handler_ended(self, event: HandlerEnded) -> None:
        method = event.method or UNKNOWN_METHOD
        outcome = _OUTCOMES.get(event.outcome, event.outcome)
        self.messages.add((event.queue, method, outcome), event.org)
        self.deliveries[event.queue, method, "true" if event.crashes else "false"] += 1
        if event.seconds or event.outcome == "Done":
            self.handler_seconds[event.queue, method].add(event.seconds)

    def _handler_started(self, event: HandlerStarted) -> None:
        if event.queued_seconds is not None:
            # The clocks of two machines differ: nothing is received before it was sent.
            self.queueing_seconds[(event.queue,)].add(max(0.0, event.queued_seconds))

    def _claim_answered(self, event: ClaimAnswered) -> None:
        self.claims[event.queue, str(event.status)] += 1
        self.claim_seconds[(event.queue,)].add(event.seconds)
        self._queue_of[event.run_id] = event.queue

    def _delivery_lost(self, event: DeliveryLost) -> None:
        self.deliveries_lost[(event.queue,)] += 1

    def _heartbeat_failed(self, event: HeartbeatFailed) -> None:
        self.heartbeats_failed[(self._queue_of.get(event.run_id, ""),)] += 1

    def _function_started(self, event: FunctionStarted) -> None:
        self.runs[(event.function,)] += 1

    def _degraded(self, event: Degraded) -> None:
        self.runs_degraded[(event.function,)] += 1

    def _loop_blocked(self, event: LoopBlocked) -> None:
        self.loop_blocked_seconds = max(self.loop_blocked_seconds, event.seconds)

    def _run_started(self, event: RunStarted) -> None:
        self._queue_of[event.run_id] = event.queues[0]

    def _run_ended(self, event: RunEnded) -> None:
        self._queue_of.pop(event.run_id, None)
