from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fairlease.clock import SystemClock
from fairlease.errors import FunctionMissing, TransientError
from fairlease.events import QueueAlarm, QueueMeasured
from fairlease.host.functions import discover
from fairlease.host.tasks import TaskContext
from fairlease.model import QueueStats
from fairlease.resources import functions_folder
from fairlease.settings import load_settings
from queue_monitor import alarms, task

if TYPE_CHECKING:
    from fairlease.events import Event

VALUES = Path(__file__).parents[3] / "charts" / "fairlease" / "values.yaml"


class Measured:
    def __init__(self, *answers: Any) -> None:
        self.answers = answers

    async def queue_stats(self, *, timeout_seconds: float) -> Any:
        if isinstance(self.answers[0], Exception):
            raise self.answers[0]
        return self.answers


async def seen_by_a_run(database: Any) -> list[Event]:
    seen: list[Event] = []
    settings = load_settings({})
    context = TaskContext("queue_monitor", "r", SystemClock(), settings, database, seen.append)
    await task.run(context)
    return seen


async def test_every_queue_is_measured_and_a_quiet_one_raises_no_alarm() -> None:
    quiet = [QueueStats("a", ready=99_999, dead_letters=7), QueueStats("b", delayed=100_000)]
    seen = await seen_by_a_run(Measured(*quiet))
    assert seen == [QueueMeasured("r", stats) for stats in quiet]


@pytest.mark.parametrize(
    ("stats", "measure"),
    [
        (QueueStats("q", ready=1, oldest_age_seconds=1200.5), "oldest_age_seconds"),
        (QueueStats("q", ready=100_000), "ready"),
        (QueueStats("q", dead_letters=9, dead_letters_new=1), "dead_letters_new"),
    ],
)
async def test_beyond_a_limit_one_alarm_names_the_measure_and_the_remedy(
    stats: QueueStats, measure: str
) -> None:
    alarm = (await seen_by_a_run(Measured(stats)))[1:]
    assert [(a.queue, a.measure) for a in alarm if isinstance(a, QueueAlarm)] == [("q", measure)]
    assert len(alarm) == 1


def test_the_limit_of_age_is_the_one_of_the_charts_alert() -> None:
    found = re.search(r"oldestMessageSeconds: (\d+)", VALUES.read_text())
    assert found is not None
    (limit,) = [one.most for one in alarms.LIMITS if one.measure == "oldest_age_seconds"]
    assert limit == int(found[1])


@pytest.mark.parametrize("database", [None, Measured(FunctionMissing("no queue_stats"))])
async def test_without_a_database_that_can_be_asked_it_says_so_and_skips(
    database: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert await seen_by_a_run(database) == []
    (record,) = caplog.records
    assert record.getMessage().startswith("skipped: ")


async def test_a_database_that_fails_fails_the_run() -> None:
    with pytest.raises(TransientError):
        await seen_by_a_run(Measured(TransientError("gone")))


def test_the_host_finds_both_tasks_and_their_schedules() -> None:
    found = discover([functions_folder()])
    assert found["queue_monitor"].manifest.schedule == "* * * * *"
    assert found["queue_maintenance"].manifest.schedule == "*/10 * * * *"
    for name in ("queue_monitor", "queue_maintenance"):
        assert found[name].load_task()
