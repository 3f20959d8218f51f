from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

from fairlease.errors import FunctionMissing, TransientError
from fairlease.host.metrics import QueueStatsCache
from fairlease.model import QueueStats
from fairlease.telemetry.loop_lag import LoopLag

STATS = (QueueStats("q", ready=1),)


class Answers:
    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), 0

    async def queue_stats(self, *, timeout_seconds: float) -> Any:
        self.asked += 1
        await asyncio.sleep(0)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


def cache(database: Any) -> tuple[QueueStatsCache, Watch]:
    watch = Watch()
    return QueueStatsCache(lambda: database, watch), watch  # type: ignore[arg-type]


async def test_many_askers_in_a_quarter_minute_are_one_question() -> None:
    answers = Answers(STATS, ())
    stats, watch = cache(answers)
    assert await asyncio.gather(*(stats.read() for _ in range(20))) == [STATS] * 20
    watch.seconds = 14.9
    assert await stats.read() == STATS
    assert answers.asked == 1
    watch.seconds = 15.0
    assert await stats.read() == ()


async def test_a_database_that_fails_is_not_asked_again_at_once_and_old_numbers_are_not_shown(
    caplog: Any,
) -> None:
    answers = Answers(STATS, TransientError("gone"), FunctionMissing("old"), STATS)
    stats, watch = cache(answers)
    seen = []
    for watch.seconds in (0.0, 20.0, 21.0, 40.0, 60.0):
        seen.append(await stats.read())
    assert seen == [STATS, None, None, None, STATS]
    assert answers.asked == 4
    assert [record.getMessage() for record in caplog.records] == ["no queue metrics: gone"]


async def test_without_a_database_nothing_is_said() -> None:
    assert await cache(None)[0].read() is None


class Late(Watch):
    """Each sleep ends as much too late as the test says."""

    def __init__(self, *late: float) -> None:
        super().__init__()
        self.late = list(late)

    async def sleep(self, seconds: float) -> None:
        if not self.late:
            await asyncio.Event().wait()
        self.seconds += seconds + self.late.pop(0)
        await asyncio.sleep(0)


async def test_the_loops_lag_is_the_worst_since_the_last_look() -> None:
    lag = LoopLag(Late(0.0, 2.5, 1.0))  # type: ignore[arg-type]
    task = asyncio.create_task(lag.run())
    for _ in range(10):
        await asyncio.sleep(0)
    assert lag.take() == 2.5
    assert lag.take() == 0.0
    task.cancel()


def test_a_host_that_nobody_scrapes_and_that_reports_nowhere_imports_neither_client() -> None:
    look = (
        "import sys, fairlease.host.server\n"
        "print({'sentry_sdk', 'prometheus_client'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"
