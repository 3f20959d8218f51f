"""D8, D9, D10: how long a run claims, and how long a handler may run."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fairlease.clock import SystemClock
from fairlease.drain.budget import RunBudget, run_budget
from fairlease.errors import ConfigurationError, TransientError
from fairlease.events import HandlerCancelled, HandlerEnded
from fairlease.model import WORST_MESSAGE_SECONDS
from fairlease.settings import knob_table, load_settings

from .rig import CLAIMS, Rig, breaks, virtual


def test_d8_the_budget_is_an_instant_from_the_birth_of_the_isolate() -> None:
    budget = run_budget(330, lifetime_seconds=480, isolate_started_at=1000.0)

    assert (budget.claim_until, budget.isolate_end) == (1330.0, 1480.0)


def test_d8_every_run_of_a_process_inherits_the_same_instant() -> None:
    assert run_budget(250).claim_until == run_budget(250).claim_until


def test_d8_none_is_unbounded() -> None:
    assert run_budget(None).allows_claim(1e12)


@pytest.mark.parametrize("seconds", [0, -1, 0.0, math.nan, math.inf, -math.inf, True, False])
def test_d8_anything_but_a_positive_finite_number_is_refused(seconds: Any) -> None:
    with pytest.raises(ConfigurationError, match="budget_seconds"):
        run_budget(seconds)


def test_d8_an_injected_clock_needs_its_own_anchor() -> None:
    with pytest.raises(ConfigurationError, match="isolate_started_at"):
        run_budget(250, clock=SystemClock())


@virtual
async def test_d9_past_the_budget_nothing_is_claimed_and_work_in_flight_finishes() -> None:
    rig = Rig(budget=RunBudget(claim_until=25.0))
    rig.send("a", 10.0, count=30)

    report = await rig.run()

    assert report.reason == "budget"
    claimed_at = [at for at, call in rig.sent_at if call.function == "settle_and_claim"]
    assert max(at for at, request in zip(claimed_at, rig.claims, strict=False)) < 25.0
    assert len(rig.ended) == len(rig.started) == len(rig.archived)
    released_at = next(at for at, call in rig.sent_at if call.function == "release_org_slot")
    assert released_at >= max(at for at, _, _ in rig.ended) > 25.0


@virtual
async def test_d9_a_run_that_starts_too_late_claims_nothing() -> None:
    rig = Rig(budget=RunBudget(claim_until=0.0))
    rig.send("a")

    report = await rig.run()

    assert (report.reason, rig.claims) == ("budget", [])


@virtual
async def test_d9_a_settle_that_outlasts_the_budget_is_followed_by_no_claim() -> None:
    rig = Rig(budget=RunBudget(claim_until=12.0), missing={"settle_and_claim"})
    rig.send("a", 10.0)
    rig.send("a", 50.0, count=3)
    rig.send("a", 1.0)
    rig.script("archive", *[breaks(TransientError("bad gateway"))] * 8)

    await rig.run()

    assert all(at < 12.0 for at, call in rig.sent_at if call.function.startswith("claim_"))


@virtual
async def test_d9_an_idle_run_does_not_wait_beyond_its_budget() -> None:
    rig = Rig(budget=RunBudget(claim_until=20.0), knobs={"idle_budget_seconds": 50})

    report = await rig.run()

    assert report.reason == "budget"
    assert rig.now() == pytest.approx(20.0, abs=0.1)


@pytest.mark.parametrize(
    ("lifetime_ms", "seconds"), [(480_000, 330), (400_000, 250), (200_000, 120)]
)
def test_d10_the_budget_leaves_one_worst_message_and_thirty_seconds(
    lifetime_ms: int, seconds: int
) -> None:
    settings = load_settings({"FAIRLEASE_ISOLATE_LIFETIME_MS": str(lifetime_ms)})

    assert settings.knobs.org_slot_run_budget_seconds == seconds


@virtual
async def test_d10_no_handler_runs_beyond_thirty_seconds_before_the_end_of_the_isolate() -> None:
    rig = Rig(budget=RunBudget(claim_until=50.0, isolate_end=100.0))
    deadlines = []

    @rig.handler(timeout=3600.0)
    async def long(args: Any, ctx: Any) -> None:
        deadlines.append(ctx.deadline)
        await rig.clock.sleep(3600.0)

    msg_id = rig.send_to("long")
    await rig.run()

    assert deadlines == [70.0]
    (cancelled,) = rig.said(HandlerCancelled)
    assert cancelled.reason == "isolate_ends"
    assert rig.now() == pytest.approx(70.0, abs=0.2)
    # Given back: it was not its fault, and the next isolate may have it at once.
    row = rig.database.queues["q"].rows[msg_id]
    assert (row.visible_at, row.uncounted) == (pytest.approx(70.0, abs=0.2), 1)


@virtual
async def test_d10_a_handler_has_a_timeout_its_own_or_the_knobs() -> None:
    rig = Rig()

    @rig.handler(timeout=40.0)
    async def own(args: Any, ctx: Any) -> None:
        await rig.clock.sleep(3600.0)

    @rig.handler()
    async def common(args: Any, ctx: Any) -> None:
        await rig.clock.sleep(3600.0)

    rig.send_to("own")
    rig.send_to("common")
    await rig.run()

    ended = {event.method: event for event in rig.said(HandlerEnded)}
    assert {method: round(event.seconds) for method, event in ended.items()} == {
        "own": 40,
        "common": 110,
    }
    assert {event.outcome for event in ended.values()} == {"RetryLater"}


@virtual
async def test_d10_past_the_last_instant_of_handlers_nothing_is_claimed_to_be_given_back() -> None:
    rig = Rig(budget=RunBudget(isolate_end=100.0))
    rig.send("a", 60.0, count=10)

    await rig.run()

    asking = [at for at, call in rig.sent_at if call.function in CLAIMS and call.arguments[0].n]
    assert max(asking) < 70.0
    assert max(at for at, _, _ in rig.started) < 70.0


def test_the_lease_bounds_how_long_the_loop_may_not_yield_and_not_the_longest_message() -> None:
    """A floor raised to the longest message (97.7 s) would hide a dead worker for as long."""
    assert knob_table()["org_slot_lease_ttl_seconds"].minimum == 45
    assert WORST_MESSAGE_SECONDS > 97.7
