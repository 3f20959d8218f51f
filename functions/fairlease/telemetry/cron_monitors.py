"""Sentry's cron monitors, made from a function's schedule at every check-in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sentry_sdk.crons import capture_checkin

if TYPE_CHECKING:
    from sentry_sdk.types import MonitorConfig

# Minutes that a poke may be late, as CronJobs are on a busy cluster.
MARGIN_MINUTES = 3
# Misses in a row that are an issue: a host that is being replaced misses one.
MISSES_THAT_COUNT = 2

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}


def monitor_config(schedule: str) -> MonitorConfig:
    return {
        "schedule": {"type": "crontab", "value": _MACROS.get(schedule, schedule)},
        "timezone": "UTC",
        "checkin_margin": MARGIN_MINUTES,
        "failure_issue_threshold": MISSES_THAT_COUNT,
        "recovery_threshold": 1,
    }


def check_in(function: str, schedule: str) -> None:
    """The poke came. A run outlasts the minute, so its end says nothing about the schedule."""
    capture_checkin(monitor_slug=function, status="ok", monitor_config=monitor_config(schedule))
