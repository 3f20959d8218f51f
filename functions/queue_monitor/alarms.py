"""The limits beyond which a person should look; the chart's alerts have the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.events import QueueAlarm

if TYPE_CHECKING:
    from fairlease.model import QueueStats


@dataclass(frozen=True, slots=True)
class Limit:
    """`measure` is a field of `QueueStats`; what is above `most` is too much."""

    measure: str
    most: float
    remedy: str


LIMITS = (
    Limit(
        "oldest_age_seconds",
        1200.0,
        "see whether its orgs are paused or at their limits, and whether anybody drains it",
    ),
    # As far as the database counts: what is there cannot be drained within hours.
    Limit("ready", 99_999, "raise org_slot_global_cap or add hosts, or stop who sends"),
    Limit("dead_letters_new", 0, "read their reasons, then replay or purge them"),
)


def alarms(run_id: str, stats: QueueStats) -> list[QueueAlarm]:
    """One for each limit that the queue is beyond."""
    return [
        QueueAlarm(run_id, stats.queue, limit.measure, value, limit.most, limit.remedy)
        for limit in LIMITS
        if (value := getattr(stats, limit.measure)) > limit.most
    ]
