"""D23 to D26: a worker and a database of different ages; nothing is lost, no cap is breached."""

from __future__ import annotations

from typing import Any

import pytest

from fairlease.drain.renew import Renewal
from fairlease.errors import CallRefused, FunctionMissing, TransientError, Unauthorized
from fairlease.events import Degraded, QueueRefused, SettleAnswered
from fairlease.messages.verdicts import Dead
from fairlease.model import ClaimAnswer, ClaimStatus
from fairlease.simulate.wire import Trip
from fairlease.transports.codec import claim_of_object, claim_of_rows

from .rig import RENEWALS, Rig, fails, virtual

OLD = {"settle_and_claim", "heartbeat_org_slot", "pin_org"}


@virtual
async def test_d23_an_unknown_pin_costs_one_call_and_the_run_goes_on_batch_at_a_time() -> None:
    rig = Rig(missing={"pin_org", "settle_and_claim"})
    rig.send("a", 10.0, count=9)
    rig.send("b", 10.0, count=3)

    report = await rig.run()

    pinned = [c for c in rig.calls("claim_org_slot_and_read") if c.arguments[0].pin_org]
    assert len(pinned) == 1
    assert len(rig.archived) == 12
    assert report.degraded == ("pin_org", "settle_and_claim")
    assert report.most_in_flight <= 4
    assert {row.read_ct for row in rig.database.queues["q"].archive.values()} == {1}


@virtual
async def test_d23_what_the_database_lacks_is_known_before_a_message_is_hidden() -> None:
    rig = Rig(missing={"heartbeat_org_slot"})
    rig.send("a", 10.0)

    await rig.run()

    first, second = rig.wire.calls[:2]
    assert (first.function, first.arguments[-1]) == ("heartbeat_org_slot", ())
    # Nobody can extend them: hidden for a whole batch of worst messages from the start.
    assert second.arguments[0].sleep_seconds == 400
    assert len(rig.calls("heartbeat_org_slot")) == 1


@virtual
async def test_d23_a_batch_that_is_narrowed_for_want_of_extensions_narrows_the_quantum() -> None:
    rig = Rig(missing={"heartbeat_org_slot"}, more={"visibility_is_set": True})
    rig.knobs = {"visibility_timeout_seconds": 240, "org_slot_stream_quantum_refills": 3}
    rig.send("a", 5.0, count=20)
    waiting = rig.send("b", 5.0)

    await rig.run()

    assert max(request.n for request in rig.claims) == 2
    order = [msg_id for _, _, msg_id in rig.started]
    assert order.index(waiting[0]) <= 3 * 2


@virtual
async def test_d23_each_function_is_missed_once_a_run_and_said_in_one_event() -> None:
    rig = Rig(missing=set(OLD))
    rig.send("a", 30.0, count=20)

    await rig.run()

    assert sorted(event.function for event in rig.said(Degraded)) == sorted(OLD)
    assert len(rig.calls("settle_and_claim")) == 1
    assert len(rig.calls("heartbeat_org_slot")) == 1
    assert len(rig.calls("renew_org_slot")) > 1
    assert len(rig.archived) == 20


@virtual
async def test_d23_a_renewal_whose_reports_nobody_hears_misses_its_function_once_too() -> None:
    rig = Rig(missing={"heartbeat_org_slot"})
    drain = rig.drain()
    drain.lease.hold("q", "a", 0.0)
    # As while a handler blocks the loop of the run: what the renewal says is heard later.
    renewal = Renewal(drain.setup, drain.lease, drain.mode, rig.wire, report=lambda _beat: None)

    for _ in range(3):
        await renewal.beat()

    asked = [call.function for call in rig.calls(*RENEWALS)]
    assert asked == ["heartbeat_org_slot", "renew_org_slot", "renew_org_slot"]


@virtual
async def test_d23_the_next_run_asks_again() -> None:
    rig = Rig(missing=set(OLD))
    rig.send("a", 1.0)
    await rig.run()
    rig.missing.clear()
    rig.send("a", 1.0)

    report = await rig.run()

    assert report.degraded == ()
    assert len(rig.archived) == 2


@pytest.mark.parametrize(
    "error", [CallRefused("not attached", code="P0001"), FunctionMissing("?", code="PGRST202")]
)
def test_d24_a_refused_queue_is_left_and_the_others_go_on(error: Any) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig(queues=("bad", "good"), missing={"settle_and_claim"})
        ids = rig.send("a", 1.0, count=6, queue="good")
        rig.send("a", 1.0, queue="bad")
        rig.script("claim", Trip(), fails(error))

        await rig.run()

        assert rig.archived == set(ids)
        assert [event.queue for event in rig.said(QueueRefused)] == ["bad"]
        assert [c.queue for c in rig.claims].count("bad") <= 2

    scenario()


@virtual
async def test_d24_with_no_queue_left_the_run_ends() -> None:
    rig = Rig(queues=("gone", "gone too"), knobs={"idle_budget_seconds": 50})
    rig.database.queues.clear()

    report = await rig.run()

    assert report.reason == "refused"
    assert rig.now() < 1.0


@pytest.mark.parametrize(
    "error", [TransientError("503", code="503", took_effect=False), Unauthorized("401")]
)
def test_d24_three_failed_claims_in_a_row_end_the_run(error: Any) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig(knobs={"idle_budget_seconds": 3600})
        rig.send("a", 1.0)
        rig.always["claim"] = fails(error)

        report = await rig.run()

        assert (report.reason, report.claims) == ("failures", 3)

    scenario()


@virtual
async def test_d24_two_failures_and_a_success_are_no_row() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 60})
    ids = rig.send("a", 1.0) + rig.send("a", 1.0, delay=20.0)
    bad = fails(TransientError("503", took_effect=False))
    rig.script("claim", bad, bad, Trip(), Trip(), bad, bad)

    await rig.run()

    assert rig.archived == set(ids)


@virtual
async def test_d24_failures_with_work_in_flight_end_the_run_once_it_is_done() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 60})
    for seconds in (10.0, 20.0, 30.0, 100.0):
        rig.send("a", seconds)
    rig.script("claim", Trip(0.01, 0.01))
    rig.always["claim"] = fails(TransientError("503", took_effect=False))

    report = await rig.run()

    assert (report.reason, report.claims) == ("failures", 4)
    assert len(rig.archived) == 4


@virtual
async def test_d25_an_older_database_archives_successes_and_keeps_everything_else() -> None:
    rig = Rig(missing={"settle_and_claim"})

    @rig.handler()
    async def fail(args: Any, ctx: Any) -> None:
        raise ValueError("again")

    @rig.handler()
    async def dead(args: Any, ctx: Any) -> None:
        raise Dead("never")

    (good,) = rig.send("a", 1.0)
    failed, hopeless = rig.send_to("fail"), rig.send_to("dead")
    await rig.run()

    assert rig.archived == {good}
    rows = rig.database.queues["q"].rows
    assert set(rows) == {failed, hopeless}
    # Neither is hidden longer than its visibility timeout, nor put back sooner.
    assert all(60.0 < row.visible_at - rig.now() <= 120.0 for row in rows.values())
    notes = {event.msg_id: event.note for event in rig.said(SettleAnswered)}
    assert "never" in notes[hopeless]
    assert [event.function for event in rig.said(Degraded)] == ["settle_and_claim"]


@virtual
async def test_d25_an_archive_that_meets_a_bad_gateway_is_repeated() -> None:
    rig = Rig(missing={"settle_and_claim"})
    ids = rig.send("a", 1.0)
    rig.script("archive", *[fails(TransientError("502"))] * 3)

    await rig.run()

    assert rig.archived == set(ids)


def test_d26_rows_are_recognised_by_their_id_whatever_a_newer_database_calls_them() -> None:
    row = {"status": "claimed_with_bells", "org": "a", "msg_id": 7, "read_ct": 1, "message": {}}

    answer = claim_of_rows([row])

    assert (answer.status, [m.msg_id for m in answer.messages]) == (ClaimStatus.CLAIMED, [7])


@pytest.mark.parametrize("status", ["resting", None, "", "org_capacity_v2"])
def test_d26_an_unknown_status_reads_as_no_demand(status: str | None) -> None:
    empty = {"status": status, "org": None, "msg_id": None, "message": None}

    assert claim_of_rows([empty]).status is ClaimStatus.NO_DEMAND
    assert claim_of_object({"status": status, "messages": []}).status is ClaimStatus.NO_DEMAND


def test_d26_a_row_of_nulls_is_nothing() -> None:
    nulls = dict.fromkeys(("status", "org", "msg_id", "read_ct", "enqueued_at", "vt", "message"))

    assert claim_of_rows([nulls]) == ClaimAnswer(ClaimStatus.NO_DEMAND)
    assert claim_of_rows([]) == ClaimAnswer(ClaimStatus.NO_DEMAND)
    assert claim_of_object({"status": None, "org": None, "messages": [nulls]}).messages == ()


@virtual
async def test_d26_messages_whose_answer_names_no_org_run_all_the_same() -> None:
    rig = Rig()
    ids = rig.send("a", 1.0, count=3)

    def nameless(said: ClaimAnswer) -> ClaimAnswer:
        return ClaimAnswer(said.status, None, said.messages)

    rig.script("claim", Trip(answer=nameless))
    await rig.run()

    assert rig.archived == set(ids)
