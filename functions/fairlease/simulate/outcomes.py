"""How the simulated database applies one outcome: fenced by the delivery, idempotent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fairlease.model import (
    DeadLetter,
    Done,
    GiveBack,
    RetryLater,
    Settled,
    SettleResult,
    SnoozeUntil,
)

if TYPE_CHECKING:
    from fairlease.model import Outcome
    from fairlease.simulate.tables import OrgState, Queue, Row


def settle_row(
    queue: Queue, row: Row | None, state: OrgState | None, outcome: Outcome, now: float
) -> Settled:
    """`row` None where the message is in its queue no more."""
    msg_id, read_ct = outcome.delivery.msg_id, outcome.delivery.read_ct
    if row is None or state is None:
        return Settled(msg_id, SettleResult.GONE)
    if row.read_ct != read_ct:
        return Settled(msg_id, SettleResult.LOST)
    if row.is_over:
        return Settled(msg_id, SettleResult.ALREADY)
    _tell_circuit(state, row, outcome, now)
    match outcome:
        case Done():
            queue.archive[msg_id] = queue.rows.pop(msg_id)
        case DeadLetter(reason=reason):
            queue.dead[msg_id] = (queue.rows.pop(msg_id), reason)
        case RetryLater(after_ms=after_ms):
            row.close(counted=True)
            queue.move(row, now + after_ms / 1000)
        case SnoozeUntil(after_ms=after_ms):
            row.close(counted=False)
            queue.move(row, now + after_ms / 1000)
        case GiveBack():
            row.close(counted=False)
            queue.move(row, now)
        case _:
            return Settled(msg_id, SettleResult.REFUSED, f"no outcome: {type(outcome).__name__}")
    return Settled(msg_id, SettleResult.APPLIED)


def _tell_circuit(state: OrgState, row: Row, outcome: Outcome, now: float) -> None:
    """A limit opens it, unless its delivery is older than the opening; the probe closes it."""
    decides = state.probe == (row.msg_id, row.read_ct)
    if outcome.limit is not None:
        if decides or not state.tripped or row.read_at > state.opened_at:
            state.trip(outcome.limit.retry_after_seconds, now)
        else:
            until = now + outcome.limit.retry_after_seconds
            state.open_until = max(state.open_until, until)
    elif decides:
        state.probe, state.probe_until = None, -math.inf
        if not isinstance(outcome, SnoozeUntil | GiveBack):
            state.tripped = False
