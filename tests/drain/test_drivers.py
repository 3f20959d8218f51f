"""The two drivers: what a wake-up is, what one round trip carries, and what the kill switch is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlease.events import HandlerEnded
from fairlease.simulate.wire import Trip

from .rig import Rig, virtual

BATCH = {"org_slot_continuous_refill": 0}


@virtual
async def test_each_completion_is_one_round_trip_that_settles_and_tops_up() -> None:
    rig = Rig()
    for seconds in (10.0, 20.0, 30.0, 40.0, 50.0, 50.0, 50.0, 50.0):
        rig.send("a", seconds)

    await rig.run()

    first_five = [call.arguments for call in rig.calls("settle_and_claim")][:5]
    assert [(request.n, len(told)) for request, told in first_five] == [(4, 0)] + [(1, 1)] * 4


@virtual
async def test_settles_of_the_same_tick_share_one_round_trip() -> None:
    rig = Rig()
    for seconds in (10.0, 10.0, 10.0, 40.0, 5.0, 5.0, 5.0):
        rig.send("a", seconds)

    await rig.run()

    request, told = [call.arguments for call in rig.calls("settle_and_claim")][1]
    assert (request.n, request.pin_org, len(told)) == (3, "a", 3)


@virtual
async def test_an_empty_top_up_waits_for_a_completion_and_is_not_repeated_before() -> None:
    rig = Rig()
    rig.send("a", 10.0)
    rig.send("a", 100.0)

    await rig.run()

    claimed_at = [at for at, call in rig.sent_at if call.function == "settle_and_claim"]
    assert claimed_at == pytest.approx([0.02, 10.04, 100.04], abs=0.05)


@virtual
async def test_a_run_never_returns_while_a_handler_runs() -> None:
    for driver in (1, 0):
        rig = Rig(knobs={"org_slot_continuous_refill": driver})
        rig.send("a", 90.0)
        rig.send("a", 1.0)

        await rig.run()

        assert rig.now() >= 90.0
        assert len(rig.ended) == 2


@virtual
async def test_never_are_more_than_n_in_flight_even_if_the_database_gives_more() -> None:
    rig = Rig(knobs={"drain_concurrency": 3})
    rig.send("a", 10.0, count=20)

    report = await rig.run()

    assert report.most_in_flight == 3
    assert _most_at_once(rig) == 3


@virtual
async def test_the_kill_switch_claims_whole_batches_and_pins_nothing() -> None:
    rig = Rig(knobs=BATCH)
    rig.send("a", 10.0, count=10)
    rig.send("b", 10.0, count=2)

    report = await rig.run()

    assert {(claim.n, claim.pin_org) for claim in rig.claims} == {(4, None)}
    assert report.most_in_flight == 4
    assert len(rig.archived) == 12


@virtual
async def test_a_batch_settles_each_message_when_its_handler_ends() -> None:
    rig = Rig(knobs=BATCH)
    rig.send("a", 5.0)
    rig.send("a", 50.0)

    await rig.run()

    settled = [at for at, c in rig.sent_at if c.function == "settle_and_claim" and c.arguments[1]]
    assert settled == pytest.approx([5.03, 50.03], abs=0.1)


@pytest.mark.parametrize("driver", [0, 1])
def test_a_failing_handler_ends_its_message_alone(driver: int) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig(knobs={"org_slot_continuous_refill": driver})

        @rig.handler()
        async def fail(args: Any, ctx: Any) -> None:
            raise ValueError

        rig.send_to("fail")
        ids = rig.send("a", 5.0, count=5)
        await rig.run()

        assert rig.archived == set(ids)
        assert [e.outcome for e in rig.said(HandlerEnded)].count("RetryLater") == 1

    scenario()


@virtual
async def test_rules_of_work_in_flight_are_inert_in_a_batch() -> None:
    """No quantum, no priority, no pin: a stop between two claims is all there is."""
    rig = Rig(queues=("urgent", "later"), knobs={**BATCH, "org_slot_stream_quantum_refills": 1})
    rig.send("a", 5.0, count=12)
    rig.send("a", 5.0, count=4, queue="later")

    await rig.run()

    assert len(rig.archived) == 16
    assert {claim.pin_org for claim in rig.claims} == {None}


@virtual
async def test_a_slow_claim_delays_no_handler_and_no_settle_is_lost() -> None:
    rig = Rig()
    for seconds in (1.0, 1.5, 2.0, 30.0, 1.0, 1.0):
        rig.send("a", seconds)
    rig.script("claim", Trip(), Trip(2.0, 2.0))

    await rig.run()

    assert len(rig.archived) == 6
    assert {row.read_ct for row in rig.database.queues["q"].archive.values()} == {1}


def _most_at_once(rig: Rig) -> int:
    changes = sorted([(at, 1) for at, _, _ in rig.started] + [(at, -1) for at, _, _ in rig.ended])
    running = most = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most


@virtual
async def test_a_cancelled_run_leaves_no_handler_behind_that_was_not_told() -> None:
    rig = Rig()
    rig.send("a", 1000.0, count=3)
    drain = rig.drain()
    running = asyncio.create_task(drain.run())
    await asyncio.sleep(5.0)
    running.cancel()
    await asyncio.wait({running})
    await asyncio.sleep(1.0)

    assert running.cancelled()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert {task.get_name() for task in left if "message" in task.get_name()} == set()
