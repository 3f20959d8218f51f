from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from fairlease.errors import (
    CallRefused,
    FunctionMissing,
    RpcError,
    TransientError,
    Unauthorized,
)
from fairlease.host.readiness import DatabaseCheck

if TYPE_CHECKING:
    from datetime import datetime


class StillClock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        raise AssertionError

    async def sleep(self, seconds: float) -> None:
        raise AssertionError


class Database:
    """Answers as scripted and counts how often it was asked."""

    def __init__(self, release: RpcError | None = None, heartbeat: RpcError | None = None) -> None:
        self.release, self.heartbeat, self.asked = release, heartbeat, 0

    async def release_org_slot(self, *_arguments: object, **_options: object) -> bool:
        self.asked += 1
        await asyncio.sleep(0)
        if self.release is not None:
            raise self.release
        return False

    async def heartbeat_org_slot(self, *_arguments: object, **_options: object) -> None:
        if self.heartbeat is not None:
            raise self.heartbeat


def check(database: Database, clock: StillClock | None = None) -> DatabaseCheck:
    return DatabaseCheck(database, ("q",), clock or StillClock())  # type: ignore[arg-type]


async def test_a_database_that_answers_is_ready() -> None:
    state = await check(Database()).readiness()
    assert (state.problems, state.notes) == ((), ())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FunctionMissing("x"), "fairlease migrate"),
        (Unauthorized("wrong key"), "refuses our key"),
        (TransientError("connection refused"), "does not answer"),
    ],
)
async def test_what_no_run_can_work_with_is_a_problem(error: RpcError, said: str) -> None:
    [problem] = (await check(Database(release=error)).readiness()).problems
    assert said in problem


async def test_the_error_is_said_in_the_log_once_and_not_to_whoever_asks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = Unauthorized('password authentication failed for user "owner"', code="28P01")
    clock = StillClock()
    probe = check(Database(release=error), clock)
    for _ in range(3):
        [problem] = (await probe.readiness()).problems
        clock.seconds += 5.0
    assert problem == "the database refuses our key (28P01); the host's log says why"
    assert caplog.text.count('failed for user "owner"') == 1


async def test_a_queue_that_is_not_attached_is_a_note_since_others_may_work() -> None:
    state = await check(Database(release=CallRefused("attach it"))).readiness()
    assert state.problems == ()
    assert state.notes == ("queue q: attach it",)


async def test_an_older_database_is_a_note() -> None:
    state = await check(Database(heartbeat=FunctionMissing("x"))).readiness()
    assert state.problems == ()
    assert "older" in state.notes[0]


async def test_many_askers_cost_one_question_in_two_seconds() -> None:
    database, clock = Database(), StillClock()
    probe = check(database, clock)
    await asyncio.gather(*(probe.readiness() for _ in range(50)))
    assert database.asked == 1
    clock.seconds += 2.0
    await asyncio.gather(*(probe.readiness() for _ in range(50)))
    assert database.asked == 2
