"""D19, D29: what became of a message is said once, or until it is answered, and only of our own."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from typing import Any

import pytest

from fairlease.drain.budget import RunBudget
from fairlease.errors import (
    CallRefused,
    RpcError,
    TransientError,
    Unauthorized,
    UnexpectedAnswer,
)
from fairlease.events import (
    CancellationSwallowed,
    ClaimFailed,
    DeliveryLost,
    HandlerCancelled,
    HandlerEnded,
    SettleAnswered,
    SettleFailed,
)
from fairlease.model import Heartbeat
from fairlease.simulate.wire import Trip

from .rig import CLAIMS, RENEWALS, Rig, breaks, fails, virtual


@virtual
async def test_d19_a_late_heartbeat_about_a_message_that_is_being_settled_is_ignored() -> None:
    rig = Rig()
    rig.send("a", 19.5)
    rig.send("a", 60.0)
    # Settled at the database at 20 s, answered at 28; the heartbeat in between finds it gone.
    rig.script("claim", Trip(0.01, 0.01), Trip(0.5, 8.0))
    rig.always["heartbeat_org_slot"] = Trip(1.0, 0.01)

    await rig.run()

    assert rig.said(DeliveryLost) == []
    assert {event.result for event in rig.said(SettleAnswered)} == {"applied"}


@virtual
async def test_d19_a_finished_message_is_extended_until_its_settle_is_answered() -> None:
    rig = Rig(knobs={"visibility_timeout_seconds": 60})
    (msg_id,) = rig.send("a", 1.0)
    bad = fails(TransientError("bad gateway"))
    rig.script("claim", Trip(0.01, 0.01), bad)
    rig.script("settle", *[bad] * 40)

    await rig.run()

    assert rig.now() > 120.0
    assert rig.database.queues["q"].archive[msg_id].read_ct == 1
    assert [event.outcome for event in rig.said(HandlerEnded)] == ["Done"]


@virtual
async def test_d19_lost_about_a_running_message_cancels_it_and_settles_nothing() -> None:
    rig = Rig()
    (msg_id,) = rig.send("a", 100.0)

    def taken(said: Heartbeat) -> Heartbeat:
        row = rig.database.queues["q"].rows[msg_id]
        row.read_ct += 1
        return dataclasses.replace(said, lost=frozenset({msg_id}), extended=frozenset())

    rig.script("heartbeat_org_slot", Trip(), Trip(answer=taken))
    await rig.run()

    assert [event.msg_id for event in rig.said(DeliveryLost)] == [msg_id]
    assert [event.reason for event in rig.said(HandlerCancelled)] == ["lost"]
    settled = [call.arguments[1] for call in rig.calls(*CLAIMS)]
    assert all(outcomes == () for outcomes in settled)


@virtual
async def test_d19_a_worker_cut_off_ends_its_handlers_when_their_timeout_is_over() -> None:
    rig = Rig(knobs={"visibility_timeout_seconds": 120, "org_slot_lease_ttl_seconds": 60})
    rig.send("a", 1000.0)
    cut_at: list[float] = []

    def watch(event: object) -> None:
        if isinstance(event, HandlerCancelled):
            cut_at.append(rig.now())

    rig.more["observe"] = watch
    # Slow to answer: it counts from when it was sent.
    rig.script("heartbeat_org_slot", Trip(), Trip(0.01, 8.0))
    rig.always["heartbeat_org_slot"] = fails(TransientError("no route"))
    drain = rig.drain()
    running = asyncio.create_task(drain.run())
    await asyncio.sleep(139.9)
    assert cut_at == []
    await asyncio.sleep(0.3)
    # The last good extension was sent at 20 s; its successor may begin at 140.
    assert cut_at == [pytest.approx(140.0, abs=0.15)]
    drain.stop()
    await running


@virtual
async def test_d19_a_message_that_was_never_extended_counts_from_when_its_claim_was_sent() -> None:
    rig = Rig(knobs={"visibility_timeout_seconds": 120})
    rig.send("a", 1000.0)
    rig.script("claim", Trip(0.01, 8.0))
    rig.script("heartbeat_org_slot", Trip())
    rig.always["heartbeat_org_slot"] = fails(TransientError("no route"))
    drain = rig.drain()
    running = asyncio.create_task(drain.run())
    await asyncio.sleep(119.0)
    assert rig.said(HandlerCancelled) == []
    await asyncio.sleep(1.5)
    assert [event.reason for event in rig.said(HandlerCancelled)] == ["lost"]
    drain.stop()
    await running


@virtual
async def test_d19_a_renewal_that_does_not_name_a_delivery_has_not_extended_it() -> None:
    rig = Rig(knobs={"visibility_timeout_seconds": 120})
    (msg_id,) = rig.send("a", 1000.0)
    rig.always["heartbeat_org_slot"] = Trip(answer=lambda _said: Heartbeat(slot_alive=True))
    drain = rig.drain()
    running = asyncio.create_task(drain.run())
    await asyncio.sleep(119.0)
    assert rig.said(HandlerCancelled) == []
    await asyncio.sleep(2.0)
    assert [(e.msg_id, e.reason) for e in rig.said(HandlerCancelled)] == [(msg_id, "lost")]
    drain.stop()
    await running


@virtual
async def test_d19_a_handler_that_ignores_its_cancellation_is_reported_and_its_settle_fenced() -> (
    None
):
    rig = Rig()

    @rig.handler(timeout=10.0)
    async def deaf(args: Any, ctx: Any) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(100.0)

    msg_id = rig.send_to("deaf")
    await rig.run()

    assert [(e.msg_id, e.reason) for e in rig.said(CancellationSwallowed)] == [(msg_id, "timeout")]
    assert msg_id in rig.archived


@virtual
async def test_d29_a_settle_with_claim_of_unknown_outcome_is_repeated_as_a_settle_alone() -> None:
    rig = Rig()
    rig.send("a", 5.0)
    rig.send("a", 50.0)
    rig.script("claim", Trip(0.01, 0.01), breaks(TransientError("bad gateway")))

    await rig.run()

    sent = [call.arguments for call in rig.calls("settle_and_claim")]
    (request, told), (again, told_again) = sent[1], sent[2]
    assert request.n > 0
    assert again.n == 0
    assert told == told_again != ()
    results = [event.result for event in rig.said(SettleAnswered)]
    assert results == ["gone", "applied"]


@virtual
async def test_d29_a_claim_of_unknown_outcome_is_not_repeated_and_reported_as_unknown() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 2})
    rig.send("a", 1.0, count=4)
    rig.script("claim", breaks(TransientError("bad gateway")))

    await rig.run()

    assert [event.outcome_unknown for event in rig.said(ClaimFailed)] == [True]
    claimed_at = [at for at, call in rig.sent_at if call.function in CLAIMS]
    assert claimed_at[1] - claimed_at[0] > 1.0


@pytest.mark.parametrize("error", [TransientError("502"), Unauthorized("401")])
def test_d29_a_success_whose_settle_fails_is_never_a_failure_of_its_handler(
    error: RpcError,
) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig()
        (msg_id,) = rig.send("a", 1.0)
        rig.script("claim", Trip(0.01, 0.01), fails(error))
        rig.script("settle", *[fails(error)] * 5)

        await rig.run()

        assert [event.outcome for event in rig.said(HandlerEnded)] == ["Done"]
        assert len(rig.started) == 1
        assert msg_id in rig.archived
        assert [event.final for event in rig.said(SettleFailed)] == [False] * 5

    scenario()


@virtual
async def test_d29_a_settle_is_repeated_until_the_isolate_ends_and_no_longer() -> None:
    rig = Rig(budget=RunBudget(claim_until=50.0, isolate_end=100.0))
    (msg_id,) = rig.send("a", 1.0)
    rig.script("claim", Trip(0.01, 0.01))
    for kind in ("claim", "settle"):
        rig.always[kind] = fails(TransientError("bad gateway"))

    await rig.run()

    last = rig.said(SettleFailed)[-1]
    assert (last.msg_ids, last.final) == ((msg_id,), True)
    assert 90.0 < rig.now() < 115.0


@virtual
async def test_d29_a_settle_that_never_gets_through_is_left_to_redelivery_and_said() -> None:
    rig = Rig(knobs={"visibility_timeout_seconds": 60})
    (msg_id,) = rig.send("a", 1.0)
    rig.script("claim", Trip(0.01, 0.01))
    rig.script("heartbeat_org_slot", Trip())
    for kind in ("claim", "settle", *RENEWALS):
        rig.always[kind] = fails(TransientError("no route"))

    await rig.run()

    assert rig.said(SettleFailed)[-1].final
    row = rig.database.queues["q"].rows[msg_id]
    assert row.visible_at <= rig.now() + 1.0


@pytest.mark.parametrize("error", [CallRefused("bad outcome", code="P0001"), UnexpectedAnswer("?")])
def test_d29_one_outcome_that_is_refused_does_not_keep_its_neighbours_from_being_settled(
    error: CallRefused,
) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig()
        ids = rig.send("a", 5.0) + rig.send("a", 5.0) + rig.send("a", 5.0)
        rig.script("claim", Trip(0.01, 0.01), fails(error))
        # All three together, then the first alone, are refused.
        rig.script("settle", fails(error), fails(error))

        await rig.run()

        assert rig.archived == set(ids[1:])
        assert rig.said(SettleFailed)[-1].msg_ids == (ids[0],)

    scenario()
