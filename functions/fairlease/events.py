"""What the engine says as it works; logs, alerts and metrics subscribe, and cannot fail it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlease.model import QueueStats


@dataclass(frozen=True, slots=True)
class Event:
    """Base; `run_id` names the run that speaks."""

    run_id: str


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """`budget_seconds` is what is left for claiming; infinite without a budget."""

    queues: tuple[str, ...]
    driver: str
    budget_seconds: float


@dataclass(frozen=True, slots=True)
class RunEnded(Event):
    """`still_running` names deliveries whose handler did not end: left to their timeout.

    `degraded` is everything that the run did without, as each `Degraded` named it.
    """

    reason: str
    messages: int
    claims: int
    seconds: float
    still_running: tuple[int, ...]
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunFailed(Event):
    """A fault of the engine itself; what is in flight ends and is settled, then the run raises."""

    error: str
    raised: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Degraded(Event):
    """The database lacks `function`; `instead` says how the rest of the run works."""

    function: str
    instead: str


@dataclass(frozen=True, slots=True)
class ClaimAnswered(Event):
    """One claim; `seconds` is how long its call took."""

    queue: str
    status: str
    cause: str | None
    org: str | None
    pinned: bool
    messages: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ClaimFailed(Event):
    """`outcome_unknown`: messages may be hidden until their visibility timeout."""

    queue: str
    error: str
    code: str
    outcome_unknown: bool


@dataclass(frozen=True, slots=True)
class QueueRefused(Event):
    """A queue that this run cannot claim from; the others go on."""

    queue: str
    error: str


@dataclass(frozen=True, slots=True)
class PinViolated(Event):
    """A pinned claim was answered with another org: the database breaks its contract."""

    queue: str
    pinned: str
    answered: str | None


@dataclass(frozen=True, slots=True)
class TopUpSkipped(Event):
    """Said once per reason and stream."""

    queue: str
    org: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class HandlerStarted(Event):
    """Said in the handler's own task, as its end is: what is set around it ends with it.

    `queued_seconds` is the time since the message was sent, None for a delivery that is not its
    first. `headers` are the message's.
    """

    queue: str
    org: str
    method: str
    msg_id: int
    attempt: int
    queued_seconds: float | None
    headers: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HandlerEnded(Event):
    """A handler ended; `outcome` is the name of its case, `seconds` its running time.

    Also said of a delivery that no handler was started for; its `method` may be empty. `crashes`
    are the earlier deliveries that began and never ended.
    """

    queue: str
    org: str
    method: str
    msg_id: int
    attempt: int
    outcome: str
    seconds: float
    error: BaseException | None = None
    crashes: int = 0


@dataclass(frozen=True, slots=True)
class HandlerCancelled(Event):
    """A handler was told to end; it stays in flight until it does."""

    queue: str
    org: str
    msg_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class CancellationSwallowed(Event):
    """A handler that was told to end returned as if it had not been; its outcome counts."""

    queue: str
    msg_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class SettleAnswered(Event):
    """What the database made of one outcome."""

    queue: str
    msg_id: int
    result: str
    note: str


@dataclass(frozen=True, slots=True)
class SettleFailed(Event):
    """An outcome that was not delivered, or refused; `final`: left to the visibility timeout."""

    queue: str
    msg_ids: tuple[int, ...]
    error: str
    final: bool


@dataclass(frozen=True, slots=True)
class OutcomeChanged(Event):
    """The database did something else than it was told: `note` says what."""

    queue: str
    msg_id: int
    note: str


@dataclass(frozen=True, slots=True)
class LeaseLost(Event):
    """No new work under this holder; `overshoot` messages run on, still extended."""

    queue: str | None
    holder: str
    why: str
    overshoot: int


@dataclass(frozen=True, slots=True)
class DeliveryLost(Event):
    """Another delivery of the message has begun, or it is gone: its handler is cancelled."""

    queue: str
    msg_id: int
    why: str


@dataclass(frozen=True, slots=True)
class HeartbeatFailed(Event):
    """A renewal that was not answered, or not well."""

    holder: str
    error: str


@dataclass(frozen=True, slots=True)
class ReleaseFailed(Event):
    """The slot stays until its lease lapses."""

    queue: str
    holder: str
    error: str


@dataclass(frozen=True, slots=True)
class LoopBlocked(Event):
    """The event loop has not stepped for `seconds`; `stack` is what it is busy with.

    `task` names the handler and its message. Said from the watchdog's thread: the loop is busy.
    """

    seconds: float
    stack: str
    task: str = ""


@dataclass(frozen=True, slots=True)
class PokeAnswered(Event):
    """A poke was accepted, or its function was running already: `started` False.

    `schedule` has five cron fields or is a macro such as @hourly, in UTC.
    """

    function: str
    schedule: str
    started: bool


@dataclass(frozen=True, slots=True)
class FunctionStarted(Event):
    """A run of a function, drain or task, begins in the task that says so."""

    function: str


@dataclass(frozen=True, slots=True)
class FunctionEnded(Event):
    """The run is over; `error` is what it raised."""

    function: str
    seconds: float
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class QueueMeasured(Event):
    """What a monitor saw of one queue."""

    stats: QueueStats


@dataclass(frozen=True, slots=True)
class QueueAlarm(Event):
    """A queue is beyond a limit: `measure` names the number, in the unit of its name."""

    queue: str
    measure: str
    value: float
    limit: float
    remedy: str


@dataclass(frozen=True, slots=True)
class QueuesMaintained(Event):
    """Rows that upkeep removed, by step; `finished` False: there is more to remove."""

    removed: Mapping[str, int]
    rounds: int
    finished: bool


Observer = Callable[[Event], None]

_log = logging.getLogger("fairlease.events")


def fan_out(observers: Iterable[Observer]) -> Observer:
    """One observer that calls all; one that raises is logged and never heard by the engine."""
    listening = tuple(observers)

    def observe(event: Event) -> None:
        for observer in listening:
            try:
                observer(event)
            except KeyboardInterrupt:
                raise
            except BaseException:  # noqa: BLE001 - a reporter must never end a run
                _log.warning("an observer failed", exc_info=True)

    return observe
