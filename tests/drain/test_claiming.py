"""D1, D2, D4, D5, D17 and the entry of a driver: which claims are sent, and as what."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import pytest

from fairlease.drain.batch import batch_at_a_time
from fairlease.drain.claim import check_shortfall
from fairlease.drain.flight import InFlight
from fairlease.drain.refill import continuous_refill
from fairlease.errors import ConfigurationError
from fairlease.events import ClaimAnswered, PinViolated
from fairlease.model import ClaimAnswer, ClaimRequest, ClaimStatus
from fairlease.simulate.wire import Trip
from fairlease.transports.codec import claim_arguments

from .rig import CLAIMS, Rig, virtual

if TYPE_CHECKING:
    from collections.abc import Callable


@virtual
async def test_d1_with_nothing_in_flight_every_queue_is_probed_unpinned_in_priority_order() -> None:
    rig = Rig(queues=("first", "second", "third"))
    rig.send("a", queue="third")

    await rig.run()

    probes = [(claim.queue, claim.pin_org) for claim in rig.claims]
    assert probes[:3] == [("first", None), ("second", None), ("third", None)]


@virtual
async def test_d1_with_nothing_in_flight_the_run_moves_on_to_another_org() -> None:
    rig = Rig()
    for org in ("a", "b", "c"):
        rig.send(org, 5.0, count=2)

    await rig.run()

    assert [org for _, org, _ in rig.started] == ["a", "a", "b", "b", "c", "c"]
    assert {c.pin_org for c in rig.claims if c.n == 4} == {None}


@virtual
async def test_d2_with_work_in_flight_a_claim_is_pinned_to_the_held_org_and_queue() -> None:
    rig = Rig(queues=("first", "second"))
    for org in ("a", "b"):
        rig.send(org, 5.0, count=6)
        rig.send(org, 5.0, count=6, queue="second")
    busy_with: list[tuple[str | None, str | None, str]] = []

    def travel(call: Any) -> Trip:
        if call.function in CLAIMS and call.arguments[0].n and drain.in_flight.running:
            flight = next(iter(drain.in_flight.running))
            request = call.arguments[0]
            busy_with.append((flight.org, request.pin_org, request.queue))
        return Trip(0.01, 0.01)

    rig.wire.travel = travel
    drain = rig.drain()
    await drain.run()

    assert len(busy_with) >= 4
    assert all(pin == org and queue == "first" for org, pin, queue in busy_with)


@virtual
async def test_d2_a_busy_run_never_frees_its_org_for_a_second_holder() -> None:
    """Unpinned it would move its slot to b with three of a still running."""
    rig = Rig(knobs={"org_slot_stream_quantum_refills": 64})
    rig.send("a", 1.0)
    rig.send("a", 50.0, count=3)
    rig.send("b", 1.0, count=4)
    request = ClaimRequest("q", "other/0", 4, 120, 60, 1, 8, "a")

    def claim_from_elsewhere(call: Any) -> Trip:
        if call.function in CLAIMS and rig.ended and rig.now() < 50.0:
            rig.send("a", 1.0)
            rivals.append(rig.database.claim(request).status)
        return Trip(0.01, 0.01)

    rivals: list[ClaimStatus] = []
    rig.wire.travel = claim_from_elsewhere
    await rig.run()

    assert len(rivals) >= 3
    assert set(rivals) == {ClaimStatus.ORG_CAPACITY}


def test_d4_unpinned_the_key_is_absent_and_not_null() -> None:
    request = ClaimRequest("q", "h", 4, 120, 60, 1, 8)

    assert "pin_org" not in claim_arguments(request)
    assert claim_arguments(dataclasses.replace(request, pin_org="a"))["pin_org"] == "a"


@virtual
async def test_d5_a_pinned_answer_of_another_org_is_an_error_and_its_messages_are_kept() -> None:
    rig = Rig(knobs={"drain_concurrency": 2})
    ids = rig.send("a", 5.0) + rig.send("a", 9.0) + rig.send("a", 5.0)

    def rename(said: ClaimAnswer) -> ClaimAnswer:
        return dataclasses.replace(said, org="z") if said.messages else said

    rig.script("claim", Trip(0.01, 0.01), Trip(0.01, 0.01, answer=rename))
    await rig.run()

    (violated,) = rig.said(PinViolated)
    assert (violated.pinned, violated.answered) == ("a", "z")
    assert rig.archived == set(ids)


@virtual
async def test_d17_every_queue_that_was_claimed_from_is_released() -> None:
    rig = Rig(queues=("first", "second"))
    rig.send("a", 5.0)
    rig.send("a", 5.0, queue="second")

    await rig.run()

    released = {call.arguments[0] for call in rig.calls("release_org_slot")}
    assert released == {"first", "second"}
    assert rig.held == []


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (ClaimStatus.NO_DEMAND, []),
        (ClaimStatus.ORG_CAPACITY, []),
        # An older database may have left a slot behind: this answer proves nothing.
        (ClaimStatus.NO_CAPACITY, ["q"]),
    ],
)
def test_d17_only_an_answer_that_proves_that_nothing_was_taken_saves_the_release(
    status: ClaimStatus, expected: list[str]
) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig()
        rig.database.scripted.append(ClaimAnswer(status))
        await rig.run()
        assert [call.arguments[0] for call in rig.calls("release_org_slot")] == expected

    scenario()


@virtual
async def test_d17_a_slot_that_was_held_before_is_released_whatever_the_last_answer() -> None:
    """`no_demand` takes no new slot; the old one is still there."""
    rig = Rig()
    rig.send("a", 5.0)

    await rig.run()

    assert rig.said(ClaimAnswered)[-1].status == ClaimStatus.NO_DEMAND
    assert len(rig.calls("release_org_slot")) == 1


@pytest.mark.parametrize("driver", [continuous_refill, batch_at_a_time])
@pytest.mark.parametrize("max_in_flight", [3, 5, math.inf])
def test_a_driver_refuses_another_bound_than_the_runs_before_it_claims(
    driver: Callable[..., Any], max_in_flight: float
) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig()
        rig.send("a")
        with pytest.raises(ConfigurationError, match="max_in_flight"):
            await driver(rig.drain(), max_in_flight)
        assert rig.wire.calls == []

    scenario()


@pytest.mark.parametrize("driver", [continuous_refill, batch_at_a_time])
def test_a_driver_refuses_a_run_that_does_not_track_what_is_in_flight(
    driver: Callable[..., Any],
) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig()
        rig.send("a")
        drain = rig.drain()
        drain.claiming.in_flight = InFlight(drain.lease, rig.clock)
        with pytest.raises(ConfigurationError, match="track"):
            await driver(drain, 4)
        assert rig.wire.calls == []

    scenario()


@pytest.mark.parametrize("n", [0, -1, 1.5, 2.0, math.nan, math.inf, True, None, "4"])
def test_a_shortfall_that_is_no_whole_number_never_reaches_the_wire(n: Any) -> None:
    with pytest.raises(ValueError, match="whole number"):
        check_shortfall(n)

    @virtual
    async def scenario() -> None:
        rig = Rig()
        with pytest.raises(ValueError, match="whole number"):
            await rig.drain().claiming.claim("q", n)
        assert rig.wire.calls == []

    scenario()
