from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fairlease.clock import SystemClock
from fairlease.errors import FunctionMissing, TransientError
from fairlease.events import Event, QueuesMaintained
from fairlease.host.tasks import TaskContext
from fairlease.settings import load_settings
from queue_maintenance import task

if TYPE_CHECKING:
    from collections.abc import Callable


class Instant(SystemClock):
    async def sleep(self, seconds: float) -> None:
        return None


class Rows:
    """`left` rows to remove; after each round `then` is called."""

    def __init__(self, left: int, then: Callable[[int], None] = lambda _round: None) -> None:
        self.left, self.then, self.rounds = left, then, 0

    async def maintain_queues(self, step_limit: int, *, timeout_seconds: float) -> dict[str, int]:
        self.rounds += 1
        removed = min(step_limit, self.left)
        self.left -= removed
        self.then(self.rounds)
        return {"q: archive": removed, "lapsed_slots": 0}


def context(database: Any) -> tuple[TaskContext, list[Event]]:
    seen: list[Event] = []
    settings = load_settings({})
    made = TaskContext("queue_maintenance", "r", Instant(), settings, database, seen.append)
    return made, seen


async def test_it_goes_on_until_no_step_reached_its_limit() -> None:
    rows = Rows(2500)
    ctx, seen = context(rows)
    await task.run(ctx)
    assert seen == [QueuesMaintained("r", {"q: archive": 2500}, 3, finished=True)]
    assert (rows.rounds, rows.left) == (3, 0)


async def test_what_is_too_much_for_one_run_is_left_to_the_next() -> None:
    rows = Rows(1_000_000)
    ctx, seen = context(rows)
    await task.run(ctx)
    assert seen == [QueuesMaintained("r", {"q: archive": 100_000}, 100, finished=False)]


async def test_told_to_stop_it_ends_after_the_round() -> None:
    rows = Rows(1_000_000)
    ctx, seen = context(rows)
    rows.then = lambda rounds: ctx.stopping.set() if rounds == 2 else None
    await task.run(ctx)
    assert seen == [QueuesMaintained("r", {"q: archive": 2000}, 2, finished=False)]


class Failing:
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def maintain_queues(self, step_limit: int, *, timeout_seconds: float) -> dict[str, int]:
        raise self.error


@pytest.mark.parametrize("database", [None, Failing(FunctionMissing("no maintain_queues"))])
async def test_without_a_database_that_can_be_asked_it_says_so_and_skips(
    database: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ctx, seen = context(database)
    await task.run(ctx)
    assert seen == []
    (record,) = caplog.records
    assert record.getMessage().startswith("skipped: ")


async def test_a_database_that_fails_fails_the_run() -> None:
    ctx, _ = context(Failing(TransientError("gone")))
    with pytest.raises(TransientError):
        await task.run(ctx)
