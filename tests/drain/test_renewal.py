"""D11, D12, D14, D15, D18: the lease is kept while work runs, and known to be lost when it is."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from typing import TYPE_CHECKING

import pytest

from fairlease.drain.budget import RunBudget
from fairlease.errors import TransientError
from fairlease.events import HandlerCancelled, HeartbeatFailed, LeaseLost
from fairlease.simulate.wire import Trip

from .rig import RENEWALS, Rig, fails, virtual

if TYPE_CHECKING:
    from fairlease.model import Heartbeat
    from fairlease.simulate.wire import Call


def beats(rig: Rig) -> list[tuple[float, Call]]:
    """The renewals of a slot that is held; not the question before the first claim."""
    found = [(at, call) for at, call in rig.sent_at if call.function in RENEWALS]
    return [(at, call) for at, call in found if call.arguments[-1] != () or at > 0.0]


@virtual
async def test_d11_the_lease_is_renewed_every_third_of_its_ttl() -> None:
    rig = Rig(knobs={"org_slot_lease_ttl_seconds": 60})
    rig.send("a", 200.0)

    await rig.run()

    gaps = [b - a for (a, _), (b, _) in itertools.pairwise(beats(rig))]
    assert len(gaps) >= 8
    assert all(gap == pytest.approx(20.0, abs=0.1) for gap in gaps)


@virtual
async def test_d11_a_renewal_that_failed_is_repeated_long_before_the_lease_lapses() -> None:
    rig = Rig(knobs={"org_slot_lease_ttl_seconds": 60})
    rig.send("a", 100.0)
    rig.script("heartbeat_org_slot", Trip(), *[fails(TransientError("busy"))] * 5)

    await rig.run()

    assert len(rig.said(HeartbeatFailed)) == 5
    assert rig.said(LeaseLost) == []


@virtual
async def test_d11_a_renewal_that_is_answered_late_does_not_delay_the_next() -> None:
    rig = Rig(knobs={"org_slot_lease_ttl_seconds": 60})
    rig.send("a", 200.0)
    rig.always["heartbeat_org_slot"] = Trip(4.0, 4.0)

    await rig.run()

    gaps = [b - a for (a, _), (b, _) in itertools.pairwise(beats(rig))]
    assert gaps[:7] == [pytest.approx(20.0, abs=0.1)] * 7


@virtual
async def test_d12_a_renewal_that_overlaps_a_claim_is_repeated_and_never_believed() -> None:
    """The claim moved the slot; "not alive" was true of where it was before."""
    rig = Rig(knobs={"org_slot_lease_ttl_seconds": 60})
    rig.send("a", 22.0)
    rig.send("a", 60.0, count=4)

    def not_alive(said: Heartbeat) -> Heartbeat:
        return dataclasses.replace(said, slot_alive=False)

    # Sent at 20 s, answered at 25 s; at 22 s a claim comes in between.
    rig.script("heartbeat_org_slot", Trip(), Trip(0.01, 5.0, answer=not_alive))
    await rig.run()

    assert rig.said(LeaseLost) == []
    (first, _), (second, _) = beats(rig)[:2]
    assert second - first < 8.0


@virtual
async def test_d12_a_renewal_that_overlaps_nothing_is_believed() -> None:
    rig = Rig()
    rig.send("a", 60.0)
    rig.script(
        "heartbeat_org_slot",
        Trip(),
        Trip(answer=lambda said: dataclasses.replace(said, slot_alive=False)),
    )

    await rig.run()

    assert len(rig.said(LeaseLost)) == 1


@virtual
async def test_d14_a_finished_run_with_work_in_flight_keeps_renewing_and_holds_its_slot() -> None:
    rig = Rig(budget=RunBudget(claim_until=5.0))
    rig.send("a", 200.0)
    rig.send("a", 1.0)
    rig.send("a", 10.0)

    await rig.run()

    assert max(at for at, _ in beats(rig)) > 180.0
    released_at = [at for at, call in rig.sent_at if call.function == "release_org_slot"]
    assert min(released_at) > 200.0


@virtual
async def test_d15_with_the_lease_lost_no_work_begins_and_what_runs_is_still_extended() -> None:
    rig = Rig()
    rig.send("a", 25.0)
    rig.send("a", 150.0, count=3)
    late = rig.send("a", 1.0)
    drain = rig.drain()
    rig.always["heartbeat_org_slot"] = Trip(0.01, 0.01)

    def lose(said: Heartbeat) -> Heartbeat:
        rig.database.slots.by_holder.clear()
        return dataclasses.replace(said, slot_alive=False)

    rig.script("heartbeat_org_slot", Trip(), Trip(answer=lose))
    await drain.run()

    (lost,) = rig.said(LeaseLost)
    assert (lost.overshoot, lost.why) == (4, "the database says so")
    assert late[0] in rig.archived
    begun = next(at for at, _, msg_id in rig.started if msg_id == late[0])
    assert begun >= max(at for at, _, msg_id in rig.ended if msg_id != late[0])
    extended = [call.arguments[-1] for at, call in beats(rig) if 60.0 < at < 150.0]
    assert extended
    assert all(len(deliveries) >= 3 for deliveries in extended)
    assert len(rig.archived) == 5


@virtual
async def test_d15_no_renewal_for_a_ttl_is_a_lost_lease_counted_from_the_last_good_one() -> None:
    rig = Rig(knobs={"org_slot_lease_ttl_seconds": 60, "visibility_timeout_seconds": 300})
    rig.send("a", 200.0)
    lost_at: list[float] = []
    rig.more["observe"] = lambda e: lost_at.append(rig.now()) if isinstance(e, LeaseLost) else None
    rig.script("heartbeat_org_slot", Trip(), Trip(0.01, 4.0))
    rig.always["heartbeat_org_slot"] = fails(TransientError("no route"))

    await rig.run()

    # The last good one was sent at 20 s, whenever it was answered.
    assert lost_at == [pytest.approx(80.0, abs=0.1)]


@virtual
async def test_d15_a_lease_that_was_never_renewed_counts_from_when_its_claim_was_sent() -> None:
    rig = Rig(knobs={"org_slot_lease_ttl_seconds": 60, "visibility_timeout_seconds": 600})
    rig.send("a", 100.0)
    lost_at: list[float] = []

    def watch(event: object) -> None:
        if isinstance(event, LeaseLost):
            lost_at.append(rig.now())

    rig.more["observe"] = watch
    rig.script("claim", Trip(0.01, 8.0))
    rig.script("heartbeat_org_slot", Trip())
    rig.always["heartbeat_org_slot"] = fails(TransientError("no route"))

    await rig.run()

    assert lost_at == [pytest.approx(60.0, abs=0.5)]


@virtual
async def test_d15_a_lease_that_is_lost_while_a_settle_repeats_is_claimed_under_the_next_name() -> (
    None
):
    rig = Rig(queues=("urgent", "q"), knobs={"drain_concurrency": 1})
    rig.send("a", 1.0, queue="q")
    rig.send("a", 50.0, queue="q")

    def not_alive(said: Heartbeat) -> Heartbeat:
        rig.database.slots.by_holder.clear()
        return dataclasses.replace(said, slot_alive=False)

    rig.script("heartbeat_org_slot", Trip(), Trip(answer=not_alive))
    # What ended in `q` is settled apart from the claim of `urgent`, and that takes its time.
    rig.script("settle", *[fails(TransientError("bad gateway"))] * 24)

    await rig.run()

    assert len(rig.archived) == 2
    claimed = [claim.holder for claim in rig.claims if claim.queue == "q"]
    assert [holder.rsplit("/", 1)[1] for holder in claimed] == ["0", "1", "1"]


@virtual
async def test_d15_an_operator_may_have_handlers_cancelled_with_the_lease() -> None:
    for cancels in (False, True):
        rig = Rig(more={"cancel_on_lost_lease": cancels})
        rig.send("a", 60.0)
        lost = Trip(answer=lambda said: dataclasses.replace(said, slot_alive=False))
        rig.script("heartbeat_org_slot", Trip(), lost)

        await rig.run()

        reasons = [event.reason for event in rig.said(HandlerCancelled)]
        assert reasons == (["lease_lost"] if cancels else [])
        assert bool(rig.archived) is True


@virtual
async def test_d18_every_renewal_extends_all_that_is_in_flight_by_the_visibility_timeout() -> None:
    rig = Rig(knobs={"visibility_timeout_seconds": 120})
    ids = rig.send("a", 250.0, count=3)

    await rig.run()

    held = [call.arguments for _, call in beats(rig)]
    assert len(held) > 10
    for _, _, _, sleep_seconds, deliveries in held[:10]:
        assert sleep_seconds == 120
        assert {d.msg_id for d in deliveries} == set(ids)
    assert all(row.read_ct == 1 for row in rig.database.queues["q"].archive.values())


@virtual
async def test_d18_after_a_kill_messages_are_back_within_a_visibility_timeout() -> None:
    rig = Rig(knobs={"visibility_timeout_seconds": 120})
    rig.send("a", 3000.0, count=4)
    run = rig.drain()

    task = asyncio.create_task(run.run())
    await asyncio.sleep(290.0)
    rig.wire.cut = True

    hidden = [row.visible_at - rig.now() for row in rig.database.queues["q"].rows.values()]
    assert len(hidden) == 4
    assert max(hidden) <= 120.0
    task.cancel()
    await asyncio.wait({task})
