"""D3, D6, D7, D21, D22: who is served next, and when a run asks again."""

from __future__ import annotations

import itertools

import pytest

from fairlease.events import ClaimAnswered, TopUpSkipped
from fairlease.model import ClaimAnswer, ClaimStatus

from .rig import Rig, virtual


@virtual
async def test_d3_a_low_priority_backlog_does_not_outlive_an_urgent_message() -> None:
    rig = Rig(queues=("urgent", "later"))
    rig.send("a", 10.0, count=12, queue="later")
    rig.send("a", 1.0, delay=5.0)

    await rig.run()

    starts = [msg_id for _, _, msg_id in rig.started]
    assert starts.index(13) == 4
    assert "priority" in {skipped.reason for skipped in rig.said(TopUpSkipped)}
    assert not [c for c in rig.claims if c.queue == "later" and c.pin_org]


@virtual
async def test_d6_a_waiting_org_is_served_within_one_quantum() -> None:
    rig = Rig(knobs={"org_slot_stream_quantum_refills": 3})
    rig.send("busy", 10.0, count=100)
    rig.send("waiting", 1.0)

    await rig.run()

    orgs = [org for _, org, _ in rig.started]
    assert orgs.index("waiting") == 3 * 4
    assert orgs.count("busy") == 100


@virtual
async def test_d7_a_lone_org_is_reconsidered_after_ever_larger_quanta_up_to_four_times() -> None:
    rig = Rig(knobs={"org_slot_stream_quantum_refills": 2})
    rig.send("lone", 10.0, count=200)

    await rig.run()

    assert _streams(rig)[:6] == [8, 16, 32, 32, 32, 32]


@virtual
async def test_d7_a_rotation_resets_the_quantum() -> None:
    rig = Rig(knobs={"org_slot_stream_quantum_refills": 2})
    rig.send("a", 10.0, count=60)
    rig.send("b", 10.0, count=4, delay=30.0)

    await rig.run()

    # 8 and 16 of a; then b, all of it; then a again from the beginning.
    assert _streams(rig)[:5] == [8, 16, 4, 8, 16]


def _streams(rig: Rig) -> list[int]:
    """How many messages each unpinned claim and its top-ups brought."""
    brought: list[int] = []
    for answered in rig.said(ClaimAnswered):
        if not answered.pinned:
            brought.append(0)
        brought[-1] += answered.messages
    return brought


@virtual
async def test_d21_no_demand_and_org_capacity_go_on_to_the_next_queue() -> None:
    for status in (ClaimStatus.NO_DEMAND, ClaimStatus.ORG_CAPACITY):
        rig = Rig(queues=("first", "second"))
        rig.database.scripted.append(ClaimAnswer(status, cause="paused"))
        ids = rig.send("a", queue="second")

        await rig.run()

        assert rig.archived == set(ids)


@pytest.mark.parametrize("cause", ["fleet_full", "stopped", None])
def test_d21_no_capacity_ends_the_run_at_once(cause: str | None) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig(queues=("first", "second"), knobs={"idle_budget_seconds": 50})
        rig.database.scripted.append(ClaimAnswer(ClaimStatus.NO_CAPACITY, cause=cause))
        rig.send("a", queue="second")

        report = await rig.run()

        assert report.reason == (cause or "no_capacity")
        assert [claim.queue for claim in rig.claims] == ["first"]
        assert rig.now() < 1.0

    scenario()


@virtual
async def test_d21_a_locked_row_does_not_speak_for_the_fleet() -> None:
    rig = Rig(queues=("first", "second"))
    rig.database.scripted.append(ClaimAnswer(ClaimStatus.NO_CAPACITY, cause="locked"))
    ids = rig.send("a", queue="second")

    await rig.run()

    assert rig.archived == set(ids)


@virtual
async def test_d21_what_is_locked_is_asked_for_again_soon_and_ever_less_often() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 50})
    locked = ClaimAnswer(ClaimStatus.NO_CAPACITY, cause="locked")
    rig.database.scripted.extend([locked] * 5)
    rig.send("a")

    await rig.run()

    claimed_at = [at for at, call in rig.sent_at if call.function == "settle_and_claim"][:6]
    gaps = [later - earlier for earlier, later in itertools.pairwise(claimed_at)]
    assert gaps == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6], rel=0.6)


@virtual
async def test_d21_probing_asks_the_same_queue_again_at_once_until_the_org_is_found() -> None:
    rig = Rig(queues=("first", "second"))
    for k in range(300):
        rig.send(f"paused-{k:03}")
        rig.database.slots.state_of(f"paused-{k:03}").paused = True
    (free,) = rig.send("with-work")

    await rig.run()

    assert free in rig.archived
    assert [c.queue for c in rig.claims][:5] == ["first"] * 5
    assert rig.started[0][0] < 0.5


@virtual
async def test_d21_probing_ends_after_a_round_however_often_the_database_says_it() -> None:
    rig = Rig()
    probing = ClaimAnswer(ClaimStatus.ORG_CAPACITY, cause="probing", retry_after_ms=0)
    rig.database.scripted.extend([probing] * 10_000)

    report = await rig.run()

    assert report.reason == "idle"
    assert report.claims <= 256


@virtual
async def test_d21_without_work_the_slot_goes_and_the_run_idles_on_a_budget_ever_slower() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 50})
    rig.send("a", 30.0)

    report = await rig.run()

    empty = [at for at, c in rig.sent_at if c.function == "settle_and_claim"][1:]
    gaps = [later - earlier for earlier, later in itertools.pairwise(empty)]
    assert report.reason == "idle"
    assert 80.0 <= rig.now() <= 81.0
    assert [round(gap) for gap in gaps] == pytest.approx([5, 10, 20], rel=0.3)
    assert rig.held == []
    released_at = next(at for at, c in rig.sent_at if c.function == "release_org_slot")
    assert released_at < 31.0


@virtual
async def test_d21_the_idle_budget_does_not_run_while_work_does() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 20, "poll_idle_seconds": 2})
    rig.send("a", 200.0)
    rig.send("a", 1.0, delay=210.0)

    await rig.run()

    assert len(rig.archived) == 2


@virtual
async def test_d21_the_servers_retry_after_shortens_the_pause() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 50})
    wait = ClaimAnswer(ClaimStatus.ORG_CAPACITY, cause="tokens", retry_after_ms=1500)
    rig.database.scripted.append(wait)
    rig.send("a")

    await rig.run()

    assert rig.started[0][0] == pytest.approx(1.56, abs=0.05)


@virtual
async def test_d22_pinned_no_demand_is_asked_again_at_the_next_completion() -> None:
    rig = Rig()
    for seconds in (10.0, 20.0, 60.0):
        rig.send("a", seconds)
    (late,) = rig.send("a", 1.0, delay=15.0)

    await rig.run()

    begun = next(at for at, _, msg_id in rig.started if msg_id == late)
    assert begun == pytest.approx(20.0, abs=0.2)


@pytest.mark.parametrize("status", [ClaimStatus.ORG_CAPACITY, ClaimStatus.NO_CAPACITY])
def test_d22_an_org_that_may_take_no_more_is_not_asked_until_nothing_is_in_flight(
    status: ClaimStatus,
) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig()
        for seconds in (10.0, 20.0, 30.0, 40.0, 5.0):
            rig.send("a", seconds)
        rig.send("b")
        first = rig.drain()
        rig.wire.travel = _script_second(rig, ClaimAnswer(status, cause="paused"))

        await first.run()

        pinned = [c for c in rig.claims if c.pin_org == "a"]
        assert len(pinned) == 1
        assert [org for _, org, _ in rig.started][:5] == ["a"] * 4 + ["b"]

    scenario()


@virtual
async def test_d22_a_locked_row_is_asked_for_again() -> None:
    rig = Rig()
    for seconds in (10.0, 20.0, 30.0, 40.0, 5.0):
        rig.send("a", seconds)
    rig.wire.travel = _script_second(rig, ClaimAnswer(ClaimStatus.NO_CAPACITY, cause="locked"))

    await rig.run()

    assert rig.started[4][0] == pytest.approx(20.0, abs=0.2)


def _script_second(rig: Rig, answer: ClaimAnswer) -> object:
    """The second claim, the first pinned one, is answered so."""
    travel = rig.wire.travel

    def once(call: object) -> object:
        if len(rig.claims) == 2 and answer not in given:
            given.append(answer)
            rig.database.scripted.append(answer)
        return travel(call)  # type: ignore[arg-type]

    given: list[ClaimAnswer] = []
    return once
