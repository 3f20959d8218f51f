from __future__ import annotations

import asyncio
import time

import pytest

from fairlease.simulate.clock import EPOCH, VirtualClock
from fairlease.simulate.loop import Deadlock, VirtualLoop, run_virtually


def test_a_day_passes_at_once_and_every_timer_is_exact() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        rung: list[float] = []
        for seconds in (86_400.0, 0.001, 3600.0, 0.5):
            loop.call_later(seconds, lambda: rung.append(loop.time()))
        await asyncio.sleep(86_401.0)
        return rung

    began = time.monotonic()

    assert run_virtually(main()) == pytest.approx([0.001, 0.5, 3600.0, 86_400.0], abs=1e-6)
    assert time.monotonic() - began < 2.0


def test_what_can_never_happen_is_a_deadlock_and_not_a_hang() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        run_virtually(main())


def test_timers_that_are_due_together_ring_in_their_order() -> None:
    async def main() -> list[int]:
        order: list[int] = []
        loop = asyncio.get_running_loop()
        for k in range(5):
            loop.call_later(10.0 - k, order.append, k)
        loop.jump(100.0)  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return order

    assert run_virtually(main()) == [4, 3, 2, 1, 0]


def test_a_handler_that_blocks_makes_everyone_late() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.call_later(1.0, loop.jump, 30.0)
        late = loop.create_future()
        loop.call_later(2.0, lambda: late.set_result(loop.time()))
        return await late

    assert run_virtually(main()) == pytest.approx(31.0, abs=1e-6)


def test_a_timeout_is_a_timeout() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 110.0)
        return asyncio.get_running_loop().time()

    assert run_virtually(main()) == pytest.approx(110.0)


def test_each_machine_has_its_own_clocks_and_only_the_calendar_goes_back() -> None:
    async def main() -> None:
        clock = VirtualClock(booted_seconds=5000.0, calendar_skew_seconds=-600.0)
        assert clock.monotonic() == 5000.0
        await clock.sleep(60.0)
        assert clock.monotonic() == pytest.approx(5060.0)
        assert (clock.now() - EPOCH).total_seconds() == pytest.approx(-540.0)
        clock.calendar_skew_seconds -= 3600.0
        clock.booted_seconds += 300.0
        assert clock.monotonic() == pytest.approx(5360.0)
        assert (clock.now() - EPOCH).total_seconds() == pytest.approx(-4140.0)

    run_virtually(main())
