"""D13: a holder name is one lease; a late or repeated release frees nothing that lives."""

from __future__ import annotations

import re

import pytest

from fairlease.errors import TransientError, UnexpectedAnswer
from fairlease.events import LeaseLost
from fairlease.simulate.wire import Trip

from .rig import Rig, breaks, fails, virtual


def serial(holder: str) -> int:
    return int(holder.rsplit("/", 1)[1])


@virtual
async def test_d13_a_holder_is_named_by_run_host_process_chance_and_lease() -> None:
    rig = Rig()
    rig.send("a")

    await rig.run()

    assert re.fullmatch(r"rig/[A-Za-z0-9._-]+/\d+/[0-9a-f]{12}/0", rig.claims[0].holder)


@virtual
async def test_d13_after_a_release_the_next_claim_has_the_next_name() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 50})
    rig.send("a", 1.0)
    rig.send("a", 1.0, delay=10.0)

    await rig.run()

    released = [call.arguments[1] for call in rig.calls("release_org_slot")]
    assert [serial(holder) for holder in released] == [0, 1]
    for at, call in enumerate(rig.wire.calls):
        if call.function == "settle_and_claim" and call.arguments[0].n:
            earlier = {
                c.arguments[1] for c in rig.wire.calls[:at] if c.function == "release_org_slot"
            }
            assert call.arguments[0].holder not in earlier


@virtual
async def test_d13_a_release_that_arrives_late_does_not_free_the_next_lease() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 50})
    rig.send("a", 1.0)
    rig.send("a", 60.0, delay=10.0)
    # Its caller gives up after 10 s; it arrives at 30 s, in the middle of the next lease.
    rig.script("release_org_slot", Trip(30.0, 0.0))

    await rig.run()

    started = next(at for at, _, msg_id in rig.started if msg_id == 2)
    assert started < 31.0 < max(at for at, _, _ in rig.ended)
    assert rig.said(LeaseLost) == []
    assert {row.read_ct for row in rig.database.queues["q"].archive.values()} == {1}
    assert rig.held == []


@pytest.mark.parametrize(
    "error", [TransientError("<html>bad gateway</html>", code="502"), UnexpectedAnswer("?")]
)
def test_d13_a_claim_of_unknown_outcome_is_released_and_its_name_not_used_again(
    error: TransientError,
) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig(queues=("q", "next"), knobs={"idle_budget_seconds": 50})
        rig.send("a", 1.0)
        rig.script("claim", breaks(error))

        await rig.run()

        functions = [call.function for call in rig.wire.calls]
        first = functions.index("settle_and_claim")
        assert functions[first + 1] == "release_org_slot"
        assert [serial(c.holder) for c in rig.claims[:2]] == [0, 1]

    scenario()


@virtual
async def test_d13_a_claim_that_never_arrived_needs_no_release_and_keeps_its_name() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 50})
    ids = rig.send("a", 1.0)
    rig.script("claim", fails(TransientError("refused", took_effect=False)))

    await rig.run()

    assert rig.archived == set(ids)
    assert [serial(c.holder) for c in rig.claims[:2]] == [0, 0]


@virtual
async def test_d13_a_release_whose_answer_is_lost_is_repeated_under_the_same_name() -> None:
    rig = Rig()
    rig.send("a", 1.0)
    rig.script("release_org_slot", breaks(TransientError("bad gateway")))

    await rig.run()

    released = [call.arguments[1] for call in rig.calls("release_org_slot")]
    assert len(released) == 2
    assert len(set(released)) == 1


@virtual
async def test_d13_a_renewal_that_meets_the_runs_own_release_is_no_lost_lease() -> None:
    rig = Rig(knobs={"org_slot_lease_ttl_seconds": 60})
    rig.send("a", 19.5)
    # Renewed at 20 s, while the release has arrived and its answer is on the way.
    rig.script("release_org_slot", Trip(0.1, 5.0))
    rig.script("heartbeat_org_slot", Trip(), Trip(0.5, 0.5))

    await rig.run()

    assert len(rig.calls("release_org_slot")) == 1
    assert rig.said(LeaseLost) == []
