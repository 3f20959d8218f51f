"""The first levels have a claim and nothing that keeps or frees a slot."""

from __future__ import annotations

import pytest

from drain.rig import Rig, virtual
from fairlease.events import Degraded, HeartbeatFailed, LeaseLost, ReleaseFailed

pytestmark = pytest.mark.slow


@virtual
async def test_a_slot_that_nothing_renews_lapses_and_is_not_asked_for_in_vain() -> None:
    rig = Rig(missing={"settle_and_claim", "heartbeat_org_slot", "renew_org_slot"})
    ids = rig.send("a", 90.0, count=4)

    await rig.run()

    assert rig.archived == set(ids)
    assert [event.why for event in rig.said(LeaseLost)] == ["no renewal succeeded for a TTL"]
    # Every third of the TTL, as one that works.
    assert 3 <= len(rig.calls("renew_org_slot")) <= 7
    assert len(rig.said(HeartbeatFailed)) == len(rig.calls("renew_org_slot"))
    assert [event.function for event in rig.said(Degraded)].count("heartbeat_org_slot") == 1


@virtual
async def test_a_slot_that_cannot_be_released_is_left_to_lapse() -> None:
    rig = Rig(missing={"release_org_slot"})
    rig.send("a", 1.0)

    await rig.run()

    assert len(rig.held) == 1
    assert len(rig.said(ReleaseFailed)) == 1
    assert len(rig.calls("release_org_slot")) == 1
