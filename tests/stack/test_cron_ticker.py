from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from fairlease.local.cron import CronJob, CronTicker, HttpPoker
from fairlease.simulate.clock import VirtualClock
from fairlease.simulate.loop import run_virtually

if TYPE_CHECKING:
    from starlette.requests import Request


def ticks(
    *jobs: CronJob,
    seconds: float,
    scale: float = 1.0,
    set_calendar: dict[float, float] | None = None,
) -> list[tuple[str, float]]:
    """(function, seconds since the start) of every poke within `seconds` of a virtual clock.

    `set_calendar`: at a second of the run, the calendar is put that many seconds ahead.
    """
    poked: list[tuple[str, float]] = []

    async def main() -> None:
        clock = VirtualClock(calendar_skew_seconds=5.0)

        async def poke(function: str) -> None:
            poked.append((function, clock.monotonic()))

        async def set_at(second: float, skew_seconds: float) -> None:
            await clock.sleep(second)
            clock.calendar_skew_seconds += skew_seconds

        run = asyncio.create_task(CronTicker(jobs, poke, clock, scale).run())
        changes = [asyncio.create_task(set_at(*change)) for change in (set_calendar or {}).items()]
        await clock.sleep(seconds)
        run.cancel()
        await asyncio.gather(run, *changes, return_exceptions=True)

    run_virtually(main())
    return poked


def test_pokes_on_the_minute_of_the_calendar() -> None:
    # The run begins five seconds past the minute.
    assert ticks(CronJob("f", "* * * * *"), seconds=180) == [("f", 55), ("f", 115), ("f", 175)]


def test_each_function_keeps_its_own_schedule_and_number_of_pokes() -> None:
    found = ticks(CronJob("a", "*/2 * * * *", pokes=2), CronJob("b", "1 * * * *"), seconds=130)
    assert found == [("b", 55), ("a", 115), ("a", 115)]


def test_scale_makes_the_calendar_run_faster() -> None:
    found = ticks(CronJob("f", "* * * * *"), seconds=10, scale=30)
    assert [round(second, 3) for _, second in found] == [1.833, 3.833, 5.833, 7.833, 9.833]


def test_calendar_set_ahead_makes_up_for_nothing_and_set_back_repeats_nothing() -> None:
    ahead = ticks(CronJob("f", "* * * * *"), seconds=120, set_calendar={60.0: 600.0})
    assert [second for _, second in ahead] == [55, 85, 115]
    back = ticks(CronJob("f", "* * * * *"), seconds=200, set_calendar={56.0: -30.0})
    assert [second for _, second in back] == [55, 145]


def test_hanging_pokes_delay_no_tick() -> None:
    poked: list[float] = []

    async def main() -> None:
        clock = VirtualClock()

        async def poke(_function: str) -> None:
            poked.append(clock.monotonic())
            await clock.sleep(1000)

        run = asyncio.create_task(CronTicker([CronJob("f", "* * * * *")], poke, clock).run())
        await clock.sleep(150)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)

    run_virtually(main())
    assert poked == [60, 120]


@pytest.mark.parametrize(
    ("status", "said"),
    [(202, []), (401, ['poke of f was answered 401: {"error":"no"}'])],
)
async def test_poke_carries_the_secret_and_says_what_was_refused(
    status: int, said: list[str]
) -> None:
    seen: list[tuple[str, str]] = []

    async def answer(request: Request) -> JSONResponse:
        seen.append((request.url.path, request.headers["x-edge-function-secret"]))
        return JSONResponse({"error": "no"}, status_code=status)

    host = Starlette(routes=[Route("/functions/v1/f", answer, methods=["POST"])])
    lines: list[str] = []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=host)) as client:
        await HttpPoker(client, lambda: "http://host/", "s3cret", lines.append)("f")
    assert seen == [("/functions/v1/f", "s3cret")]
    assert lines == said


async def test_no_host_is_no_poke() -> None:
    lines: list[str] = []
    async with httpx.AsyncClient() as client:
        await HttpPoker(client, lambda: None, "s3cret", lines.append)("f")
    assert lines == []


async def test_host_that_is_away_is_one_line() -> None:
    lines: list[str] = []
    async with httpx.AsyncClient(trust_env=False) as client:
        await HttpPoker(client, lambda: "http://127.0.0.1:1", "s3cret", lines.append)("f")
    (line,) = lines
    assert line.startswith("poke of f failed: ConnectError")
    assert "s3cret" not in line
