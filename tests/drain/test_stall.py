"""D16: a run that stands still is given up: its handlers cancelled, or else the process ended."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from fairlease.errors import TransientError
from fairlease.events import HandlerCancelled, SettleFailed
from fairlease.simulate.wire import Trip

from .rig import RENEWALS, Rig, fails, virtual

if TYPE_CHECKING:
    from fairlease.drain.run import Drain


@virtual
async def test_d16_without_progress_handlers_are_cancelled_settled_and_the_slot_released() -> None:
    rig = Rig(knobs={"max_stall_seconds": 60})
    rig.send("a", 3000.0, count=2)

    report = await rig.run()

    assert report.reason == "stalled"
    assert {event.reason for event in rig.said(HandlerCancelled)} == {"stalled"}
    assert rig.now() == pytest.approx(60.0, abs=1.0)
    assert rig.held == []
    rows = rig.database.queues["q"].rows.values()
    # A retry, counted: the handler was given its time and did nothing with it.
    assert {(row.is_over, row.uncounted) for row in rows} == {(True, 0)}


@virtual
async def test_d16_a_handler_that_says_so_makes_progress() -> None:
    rig = Rig(knobs={"max_stall_seconds": 60})

    @rig.handler(timeout=3600.0)
    async def busy(args: Any, ctx: Any) -> None:
        for _ in range(10):
            await asyncio.sleep(50.0)
            ctx.progress()

    rig.send_to("busy")
    report = await rig.run()

    assert (report.reason, len(rig.archived)) == ("idle", 1)


@virtual
async def test_d16_a_settle_of_another_message_is_progress() -> None:
    rig = Rig(knobs={"max_stall_seconds": 60})
    rig.send("a", 110.0)
    for _ in range(6):
        rig.send("a", 40.0)

    report = await rig.run()

    assert (report.reason, len(rig.archived)) == ("idle", 7)


@virtual
async def test_d16_a_handler_that_does_not_end_keeps_the_slot_from_being_released() -> None:
    reasons: list[str] = []
    rig = Rig(knobs={"max_stall_seconds": 60}, more={"end_process": reasons.append})

    @rig.handler(timeout=3600.0)
    async def deaf(args: Any, ctx: Any) -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    over = asyncio.Event()
    msg_id = rig.send_to("deaf")
    report = await rig.run()

    assert report.still_running == (msg_id,)
    assert rig.calls("release_org_slot") == []
    assert len(reasons) == 1
    asked = len(rig.calls(*RENEWALS))
    await asyncio.sleep(300.0)
    assert len(rig.calls(*RENEWALS)) == asked
    assert rig.held == []
    over.set()
    await asyncio.sleep(0)


@virtual
async def test_d16_an_idle_run_does_not_stall() -> None:
    rig = Rig(knobs={"max_stall_seconds": 30, "idle_budget_seconds": 200})

    report = await rig.run()

    assert report.reason == "idle"
    assert rig.now() > 190.0


@pytest.mark.parametrize("before", ["told to stop", "failed"])
def test_d16_handlers_that_do_not_end_end_the_process_whatever_the_run_ends_for(
    before: str,
) -> None:
    @virtual
    async def scenario() -> None:
        reasons: list[str] = []
        rig = Rig(knobs={"max_stall_seconds": 60}, more={"end_process": reasons.append})
        over = asyncio.Event()

        @rig.handler(timeout=3600.0)
        async def deaf(args: Any, ctx: Any) -> None:
            while not over.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await over.wait()

        rig.send_to("deaf")
        rig.send("a", 10.0)
        drain = rig.drain()
        running = asyncio.create_task(drain.run())
        await asyncio.sleep(1.0)
        if before == "failed":
            _break_topping_up(drain)
        else:
            drain.stop()
        await asyncio.wait({running})
        over.set()
        await asyncio.sleep(1.0)

        assert (running.exception() is None) == (before != "failed")
        assert len(reasons) == 1
        assert rig.calls("release_org_slot") == []

    scenario()


def _break_topping_up(drain: Drain) -> None:
    def remaining(_quantum: object) -> int:
        raise ZeroDivisionError

    drain.quantum = type("Broken", (), {"remaining": property(remaining)})()


@virtual
async def test_d16_a_settle_that_is_never_answered_is_no_progress_and_given_up() -> None:
    rig = Rig(knobs={"max_stall_seconds": 600})
    (msg_id,) = rig.send("a", 1.0)
    rig.script("claim", Trip(0.01, 0.01))
    # Renewals get through, so nothing else ever ends this.
    for kind in ("claim", "settle"):
        rig.always[kind] = fails(TransientError("statement timeout", code="57014"))

    report = await rig.run()

    assert report.reason == "stalled"
    assert rig.now() == pytest.approx(606.0, abs=6.0)
    last = rig.said(SettleFailed)[-1]
    assert (last.msg_ids, last.final) == ((msg_id,), True)
    assert rig.held == []
