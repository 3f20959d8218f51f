from __future__ import annotations

import asyncio
import random
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from fairlease.drain import watchdog as module
from fairlease.drain.budget import RunBudget
from fairlease.drain.lease import Lease
from fairlease.drain.setup import RunSetup
from fairlease.drain.watchdog import Watchdog
from fairlease.events import Event, LoopBlocked
from fairlease.settings import load_settings


class HandClock:
    """Moves when the test says so."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


class Scene:
    """A watchdog on a loop that steps only when the test lets it."""

    def __init__(self, isolate_end: float = 1e9) -> None:
        self.clock, self.events, self.ended = HandClock(), list[Event](), list[str]()
        self.asked: list[Any] = []
        self.lease = Lease("h", 60.0)
        setup = RunSetup(
            run_id="run",
            name="n",
            queues=("q",),
            handlers={},
            knobs=load_settings({"FAIRLEASE_MAX_STALL_SECONDS": "60"}).knobs,
            budget=RunBudget(isolate_end=isolate_end),
            rpc=None,  # type: ignore[arg-type]
            clock=self.clock,
            dice=random.Random(1),
            observe=self.events.append,
            end_process=self.ended.append,
        )
        self.watchdog = Watchdog(setup, self.lease, self, threading.get_ident())  # type: ignore[arg-type]

    def call_soon_threadsafe(self, step: Any) -> None:
        self.asked.append(step)

    def step(self) -> None:
        while self.asked:
            self.asked.pop()()

    def at(self, seconds: float) -> str | None:
        self.clock.seconds = seconds
        return self.watchdog.look()

    @property
    def blocked(self) -> list[LoopBlocked]:
        return [event for event in self.events if isinstance(event, LoopBlocked)]


def test_a_loop_that_steps_is_left_alone() -> None:
    scene = Scene()

    for k in range(1000):
        assert scene.at(k * 0.2) is None
        scene.step()

    assert scene.events == []


def test_a_loop_that_blocks_for_a_second_is_said_once_with_its_stack() -> None:
    scene = Scene()

    for tenths in range(100):
        scene.at(tenths / 10)

    (blocked,) = scene.blocked
    assert blocked.seconds == pytest.approx(1.0, abs=0.11)
    assert "test_a_loop_that_blocks_for_a_second" in blocked.stack
    assert len(blocked.stack) <= module.STACK_LIMIT


def test_a_loop_that_blocks_again_is_said_again() -> None:
    scene = Scene()
    for k in range(20):
        scene.at(k / 10)
    scene.step()
    for k in range(30, 50):
        scene.at(k / 10)

    assert len(scene.blocked) == 2


def test_one_handler_that_blocks_again_and_again_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Task:
        def get_name(self) -> str:
            return "resize of message 7"

    scene, task = Scene(), Task()
    monkeypatch.setattr(asyncio, "current_task", lambda _loop: task)
    for k in range(200):
        scene.at(k / 10)
        if k % 20 == 19:
            scene.step()

    assert [event.task for event in scene.blocked] == ["resize of message 7"]


def test_d16_a_loop_that_stands_still_is_given_up_its_lease_lapses_and_the_process_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene()
    monkeypatch.setattr(module, "PERIOD_SECONDS", 0.0)
    assert scene.at(0.0) is None
    assert scene.at(59.0) is None
    scene.clock.seconds = 61.0

    scene.watchdog.watch()

    assert scene.ended == ["the event loop has not stepped for 61 s"]
    assert scene.lease.given_up


def test_d16_the_process_ends_at_the_wall_clock_of_the_isolate_even_if_the_loop_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(isolate_end=480.0)
    monkeypatch.setattr(module, "PERIOD_SECONDS", 0.0)
    assert scene.at(479.0) is None
    scene.step()
    scene.clock.seconds = 480.0

    scene.watchdog.watch()

    assert scene.ended == ["the isolate is past its wall clock"]


def test_a_watchdog_that_is_told_to_stop_ends_nothing() -> None:
    scene = Scene(isolate_end=0.0)
    scene.watchdog.stopped.set()

    scene.watchdog.watch()

    assert scene.ended == []
