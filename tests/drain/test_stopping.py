"""D20: a run that is told to stop gives back what it has not begun, and nothing that still runs."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from fairlease.drain.budget import RunBudget
from fairlease.events import HandlerCancelled, HandlerEnded
from fairlease.messages.verdicts import Dead
from fairlease.simulate.wire import Trip

from .rig import Rig, virtual

if TYPE_CHECKING:
    from fairlease.drain.run import Drain, RunReport


async def stopped(drain: Drain, after: float, grace: float | None = None) -> RunReport:
    running = asyncio.create_task(drain.run())
    await asyncio.sleep(after)
    drain.stop(grace)
    return await running


@virtual
async def test_d20_a_stop_ends_claiming_at_once_and_lets_work_in_flight_finish() -> None:
    rig = Rig()
    rig.send("a", 20.0, count=10)

    report = await stopped(rig.drain(), 5.0)

    assert (report.reason, report.still_running) == ("stopping", ())
    assert len(rig.claims) == 1
    assert len(rig.archived) == 4
    assert rig.held == []


@virtual
async def test_d20_a_claim_on_the_wire_is_awaited_and_given_back_unstarted() -> None:
    rig = Rig()
    ids = rig.send("a", 20.0, count=4)
    rig.script("claim", Trip(1.0, 3.0))

    await stopped(rig.drain(), 2.0)

    assert rig.started == []
    rows = rig.database.queues["q"].rows
    assert set(rows) == set(ids)
    for row in rows.values():
        assert row.visible_at <= rig.now()
        assert row.as_message().attempt == 0
    assert rig.held == []


@virtual
async def test_d20_a_claim_on_the_wire_when_the_budget_ends_is_given_back_too() -> None:
    rig = Rig(budget=RunBudget(claim_until=2.0))
    ids = rig.send("a", 20.0, count=4)
    rig.script("claim", Trip(1.0, 3.0))

    await rig.run()

    assert rig.started == []
    assert {row.read_ct - row.uncounted for row in rig.database.queues["q"].rows.values()} == {0}
    assert set(rig.database.queues["q"].rows) == set(ids)


@virtual
async def test_d20_ten_seconds_before_the_grace_ends_handlers_are_cancelled_and_given_back() -> (
    None
):
    rig = Rig()
    (msg_id,) = rig.send("a", 300.0)
    cancelled_at: list[float] = []

    def watch(event: object) -> None:
        if isinstance(event, HandlerCancelled):
            cancelled_at.append(rig.now())

    report = await stopped(rig.drain(observe=watch), 5.0, grace=60.0)

    assert cancelled_at == [pytest.approx(55.0)]
    assert report.still_running == ()
    row = rig.database.queues["q"].rows[msg_id]
    assert row.visible_at == pytest.approx(55.0, abs=0.1)
    assert row.as_message().attempt == 0
    assert rig.held == []


@virtual
async def test_d20_what_has_not_ended_is_named_and_left_and_the_slot_lapses() -> None:
    rig = Rig()
    over = asyncio.Event()

    @rig.handler(timeout=3600.0)
    async def deaf(args: Any, ctx: Any) -> None:
        while not over.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await over.wait()

    deaf_id = rig.send_to("deaf")
    (good_id,) = rig.send("a", 300.0)
    report = await stopped(rig.drain(), 5.0, grace=60.0)

    assert report.still_running == (deaf_id,)
    # Within the ten seconds that the grace keeps for it, and while the process still lives.
    assert rig.now() == pytest.approx(60.0, abs=0.5)
    assert rig.calls("release_org_slot") == []
    rows = rig.database.queues["q"].rows
    assert rows[good_id].is_over
    assert not rows[deaf_id].is_over
    assert rows[deaf_id].visible_at > rig.now()
    await asyncio.sleep(120.0)
    assert rig.held == []
    over.set()
    await asyncio.sleep(0)


@virtual
async def test_d20_a_handler_that_cleans_up_before_it_ends_is_given_back_then() -> None:
    rig = Rig()

    @rig.handler(timeout=3600.0)
    async def tidy(args: Any, ctx: Any) -> None:
        try:
            await asyncio.sleep(1000.0)
        finally:
            await asyncio.sleep(3.0)

    msg_id = rig.send_to("tidy")
    await stopped(rig.drain(), 5.0, grace=60.0)

    row = rig.database.queues["q"].rows[msg_id]
    assert row.visible_at == pytest.approx(58.0, abs=0.1)
    assert [event.outcome for event in rig.said(HandlerEnded)] == ["GiveBack"]


@virtual
async def test_d20_a_timeout_that_was_ignored_stays_a_failure_when_the_run_is_stopped() -> None:
    rig = Rig()

    @rig.handler(timeout=10.0)
    async def stubborn(args: Any, ctx: Any) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1000.0)
        await asyncio.sleep(1000.0)

    rig.send_to("stubborn")
    await stopped(rig.drain(), 15.0, grace=60.0)

    # Given back, uncounted, it would come again for ever.
    assert [event.reason for event in rig.said(HandlerCancelled)] == ["timeout", "stopping"]
    assert [event.outcome for event in rig.said(HandlerEnded)] == ["RetryLater"]


@virtual
async def test_d20_what_a_handler_decides_when_it_is_told_to_end_is_heard() -> None:
    rig = Rig()

    @rig.handler(timeout=3600.0)
    async def deciding(args: Any, ctx: Any) -> None:
        try:
            await asyncio.sleep(1000.0)
        except asyncio.CancelledError:
            raise Dead("half of it is done; a person must look") from None

    rig.send_to("deciding")
    await stopped(rig.drain(), 5.0, grace=60.0)

    assert [event.outcome for event in rig.said(HandlerEnded)] == ["DeadLetter"]


@virtual
async def test_d20_a_handler_that_ends_by_itself_in_the_grace_counts_as_it_ended() -> None:
    rig = Rig()
    rig.send("a", 30.0)

    await stopped(rig.drain(), 5.0, grace=60.0)

    assert len(rig.archived) == 1


@virtual
async def test_d20_a_stop_wakes_an_idle_run() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 50})

    report = await stopped(rig.drain(), 1.0)

    assert report.reason == "stopping"
    assert rig.now() == pytest.approx(1.0, abs=0.1)


@virtual
async def test_d20_a_second_stop_changes_nothing() -> None:
    rig = Rig()
    rig.send("a", 20.0)
    drain = rig.drain()
    running = asyncio.create_task(drain.run())
    await asyncio.sleep(1.0)
    drain.stop()
    drain.stop()
    drain.cancel_handlers()
    drain.cancel_handlers()

    report = await running

    assert report.reason == "stopping"
    assert len(rig.said(HandlerCancelled)) == 1
