"""What an answer without messages means."""

from __future__ import annotations

from .fault import in_drain

_ROTATION = "test_rotation.py::test_"

FAULTS = (
    in_drain(
        "D21",
        f"{_ROTATION}d21_no_demand_and_org_capacity_go_on_to_the_next_queue",
        "rotate.py",
        "if answer.status is ClaimStatus.NO_CAPACITY and answer.cause != LOCKED:",
        "if answer.status is not ClaimStatus.NO_DEMAND and answer.cause != LOCKED:",
        "one saturated org ends the run",
    ),
    in_drain(
        "D21",
        f"{_ROTATION}d21_no_capacity_ends_the_run_at_once",
        "rotate.py",
        "if answer.status is ClaimStatus.NO_CAPACITY and answer.cause != LOCKED:",
        "if False:",
        "a full fleet is asked on",
    ),
    in_drain(
        "D21",
        f"{_ROTATION}d21_a_locked_row_does_not_speak_for_the_fleet",
        "rotate.py",
        " and answer.cause != LOCKED:",
        ":",
        "a locked row ends the run",
    ),
    in_drain(
        "D21",
        f"{_ROTATION}d21_probing_asks_the_same_queue_again_at_once_until_the_org_is_found",
        "rotate.py",
        "        if not probing:\n",
        "        if True:\n",
        "64 blocked orgs hide the rest",
    ),
    in_drain(
        "D21",
        f"{_ROTATION}d21_without_work_the_slot_goes_and_the_run_idles_on_a_budget_ever_slower",
        "rotate.py",
        "        await drain.releasing.release()\n        if not drain.probe",
        "        if not drain.probe",
        "an idle run keeps its slot",
    ),
    in_drain(
        "D21",
        f"{_ROTATION}d21_without_work_the_slot_goes_and_the_run_idles_on_a_budget_ever_slower",
        "rotate.py",
        "pause = drain.delay.after_empty()",
        "pause = drain.delay.after_work()",
        "an idle run polls at the busy pace",
    ),
    in_drain(
        "D21",
        f"{_ROTATION}d21_what_is_locked_is_asked_for_again_soon_and_ever_less_often",
        "rotate.py",
        "after_ms = 0 if answer.cause == LOCKED else answer.retry_after_ms",
        "after_ms = answer.retry_after_ms",
        "a lock of a moment costs an idle pause",
    ),
    in_drain(
        "D21",
        f"{_ROTATION}d21_the_servers_retry_after_shortens_the_pause",
        "rotate.py",
        "if drain.retry_after_seconds is not None:",
        "if False:",
        "retry_after_ms is not read",
    ),
    in_drain(
        "D22",
        f"{_ROTATION}d22_pinned_no_demand_is_asked_again_at_the_next_completion",
        "refill.py",
        "full = answer.status in (ClaimStatus.ORG_CAPACITY, ClaimStatus.NO_CAPACITY)",
        "full = answer.status is not ClaimStatus.CLAIMED",
        "an empty answer stops the topping up",
    ),
    in_drain(
        "D22",
        f"{_ROTATION}d22_an_org_that_may_take_no_more_is_not_asked_until_nothing_is_in_flight",
        "refill.py",
        'return "org_full" if drain.org_is_full else None',
        "return None",
        "a paused org is asked at every completion",
    ),
    in_drain(
        "D22",
        f"{_ROTATION}d22_a_locked_row_is_asked_for_again",
        "refill.py",
        "drain.org_is_full = full and answer.cause != LOCKED",
        "drain.org_is_full = full",
        "a locked row stops the topping up",
    ),
)
