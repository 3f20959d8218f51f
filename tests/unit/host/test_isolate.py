from __future__ import annotations

import asyncio
import math
import os
import signal
from datetime import UTC, datetime

import pytest

from fairlease.drain.budget import ISOLATE_STARTED_AT
from fairlease.host.isolate import retire
from fairlease.host.lifetime import Lifetime, lifetime_of
from fairlease.host.stop_signals import StopSignalLoop
from fairlease.settings import IssueKind, load_settings

LIFETIME = Lifetime(lifetime_seconds=400, budget_seconds=250, grace_seconds=150)


class JumpingClock:
    """Every sleep is over at once; the time is what was slept."""

    def __init__(self) -> None:
        self.seconds = ISOLATE_STARTED_AT

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    @property
    def age(self) -> float:
        return self.seconds - ISOLATE_STARTED_AT


def lifetime(grace: str | None = None, **knobs: int) -> tuple[Lifetime, list[IssueKind]]:
    environ = {f"FAIRLEASE_{name.upper()}": str(value) for name, value in knobs.items()}
    if grace is not None:
        environ["FAIRLEASE_GRACE_SECONDS"] = grace
    found, issues = lifetime_of(load_settings(environ).knobs, environ)
    return found, [issue.kind for issue in issues]


@pytest.mark.parametrize(
    ("lifetime_ms", "budget", "grace"),
    [(400_000, 250, 150), (480_000, 330, 150), (270_000, 120, 150), (150_000, 120, 30)],
)
def test_the_grace_is_what_the_budget_leaves_so_that_claiming_never_pauses(
    lifetime_ms: int, budget: int, grace: int
) -> None:
    found, issues = lifetime(isolate_lifetime_ms=lifetime_ms)
    assert (found.budget_seconds, found.grace_seconds, issues) == (budget, grace, [])
    assert found.serving_seconds == budget


def test_the_kill_comes_at_the_lifetime_that_the_budget_assumes() -> None:
    for grace in (None, "30", "200"):
        found, _ = lifetime(grace)
        assert found.serving_seconds + found.grace_seconds == 400


def test_a_shorter_grace_is_taken_and_its_gap_is_an_issue() -> None:
    found, issues = lifetime("30")
    assert (found.grace_seconds, issues) == (30, [IssueKind.GRACE_GAP])
    assert lifetime("200")[1] == []


@pytest.mark.parametrize("grace", ["", "x", "10", "341", "-1", "99999999999999999999", "1.5", "²"])
def test_a_grace_that_cannot_be_taken_is_an_issue_and_the_natural_one_applies(grace: str) -> None:
    found, issues = lifetime(grace)
    assert (found.grace_seconds, issues) == (150, [IssueKind.UNPARSEABLE])


def test_a_lifetime_of_ages_overflows_no_timer() -> None:
    found, _ = lifetime(isolate_lifetime_ms=10**17)
    assert math.isfinite(found.lifetime_seconds)
    assert found.serving_seconds + found.grace_seconds <= 10**8


async def test_an_idle_isolate_past_its_budget_asks_for_a_successor() -> None:
    clock, asked = JumpingClock(), []
    await retire(LIFETIME, clock, lambda: True, lambda: asked.append(clock.age))
    assert asked == [pytest.approx(260, abs=1)]


async def test_an_isolate_with_work_in_flight_asks_once_it_is_idle() -> None:
    clock, asked = JumpingClock(), []
    short_grace = Lifetime(400, 250, 30)
    await retire(short_grace, clock, lambda: clock.age > 300, lambda: asked.append(clock.age))
    assert asked == [pytest.approx(301, abs=2)]


async def test_an_isolate_that_never_gets_idle_asks_when_the_server_forgot_it() -> None:
    clock, asked = JumpingClock(), []
    short_grace = Lifetime(400, 250, 30)
    await retire(short_grace, clock, lambda: False, lambda: asked.append(clock.age))
    assert asked == [pytest.approx(380, abs=2)]


@pytest.mark.parametrize("raises", [False, True])
def test_of_many_stop_signals_the_server_hears_one_and_we_hear_it_before(raises: bool) -> None:
    loop, heard = StopSignalLoop(), []

    def on_stop() -> None:
        heard.append("ours")
        if raises:
            raise RuntimeError

    loop.on_stop = on_stop
    loop.set_exception_handler(lambda _loop, _context: None)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heard.append, "the server's")
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
            loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        loop.close()
    assert heard == ["ours", "the server's"]
