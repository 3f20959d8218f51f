"""One timer for the deadlines of all handlers, and each is told at its own."""

from __future__ import annotations

import asyncio
import math

from fairlease.drain.deadlines import Deadlines
from fairlease.drain.flight import Flight
from fairlease.model import Message
from fairlease.simulate.clock import VirtualClock
from fairlease.simulate.loop import run_virtually

Told = list[tuple[float, int, str]]


def flight(number: int) -> Flight:
    return Flight("jobs", "a", Message(number, 1, {}))


def watched(told: Told) -> Deadlines:
    """Must be made inside the running loop; times are seconds of the virtual loop."""
    clock = VirtualClock(booted_seconds=1000.0)
    return Deadlines(
        clock,
        lambda late, reason: told.append(
            (round(clock.monotonic() - 1000.0, 3), late.message.msg_id, reason)
        ),
    )


def test_each_is_told_at_its_own_deadline_in_whatever_order_they_were_set() -> None:
    async def main() -> Told:
        told: Told = []
        deadlines = watched(told)
        for number, seconds in ((1, 30.0), (2, 10.0), (3, 20.0), (4, 10.0)):
            deadlines.set(flight(number), 1000.0 + seconds, f"after {seconds:.0f}")
        await asyncio.sleep(60)
        return told

    assert run_virtually(main()) == [
        (10.0, 2, "after 10"),
        (10.0, 4, "after 10"),
        (20.0, 3, "after 20"),
        (30.0, 1, "after 30"),
    ]


def test_one_that_ended_is_told_nothing_and_the_others_are_told_in_time() -> None:
    async def main() -> Told:
        told: Told = []
        deadlines = watched(told)
        first, second = flight(1), flight(2)
        deadlines.set(first, 1010.0, "late")
        deadlines.set(second, 1020.0, "late")
        deadlines.clear(first)
        await asyncio.sleep(60)
        deadlines.clear(second)
        return told

    assert run_virtually(main()) == [(20.0, 2, "late")]


def test_a_deadline_already_over_is_told_at_the_next_step_and_an_infinite_one_never() -> None:
    async def main() -> Told:
        told: Told = []
        deadlines = watched(told)
        deadlines.set(flight(1), 990.0, "late")
        deadlines.set(flight(2), math.inf, "never")
        await asyncio.sleep(0.001)
        return told

    assert [number for _, number, _ in run_virtually(main())] == [1]


def test_it_goes_on_after_all_have_ended() -> None:
    async def main() -> Told:
        told: Told = []
        deadlines = watched(told)
        first = flight(1)
        deadlines.set(first, 1005.0, "late")
        deadlines.clear(first)
        deadlines.set(flight(2), 1050.0, "late")
        await asyncio.sleep(60)
        return told

    assert run_virtually(main()) == [(50.0, 2, "late")]
