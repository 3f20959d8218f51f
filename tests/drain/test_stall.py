"""D16: a run that stands still is given up: its handlers cancelled, or else the process ended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlease.events import HandlerCancelled

from .rig import RENEWALS, Rig, virtual


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
