"""How long a run claims and a handler runs."""

from __future__ import annotations

from .fault import Fault, in_drain

_BUDGET = "test_budget.py::test_"

FAULTS = (
    in_drain(
        "D8",
        f"{_BUDGET}d8_every_run_of_a_process_inherits_the_same_instant",
        "budget.py",
        "anchor = ISOLATE_STARTED_AT if",
        "anchor = SystemClock().monotonic() if",
        "the budget counts from the poke",
    ),
    in_drain(
        "D8",
        f"{_BUDGET}d8_anything_but_a_positive_finite_number_is_refused",
        "budget.py",
        "if isinstance(value, bool) or not math.isfinite(value) or value <= 0:",
        "if value < 0:",
        "0, NaN and infinity are budgets",
    ),
    in_drain(
        "D8",
        f"{_BUDGET}d8_an_injected_clock_needs_its_own_anchor",
        "budget.py",
        "if clock is not None and isolate_started_at is None:",
        "if False:",
        "two clocks are mixed",
    ),
    in_drain(
        "D9",
        f"{_BUDGET}d9_past_the_budget_nothing_is_claimed_and_work_in_flight_finishes",
        "claim.py",
        "if not self.setup.budget.allows_claim(self.setup.clock.monotonic()):",
        "if False:",
        "the budget is not asked",
    ),
    in_drain(
        "D9",
        f"{_BUDGET}d9_a_settle_that_outlasts_the_budget_is_followed_by_no_claim",
        "claim.py",
        "            if self.refusal() is not None:\n                return None\n",
        "",
        "the gate is asked only before the settle",
    ),
    in_drain(
        "D10",
        f"{_BUDGET}d10_no_handler_runs_beyond_thirty_seconds_before_the_end_of_the_isolate",
        "budget.py",
        "ISOLATE_RESERVE_SECONDS = 30.0",
        "ISOLATE_RESERVE_SECONDS = 0.0",
        "handlers run until the kill",
    ),
    Fault(
        "D10",
        f"tests/drain/{_BUDGET}d10_the_budget_leaves_one_worst_message_and_thirty_seconds",
        "fairlease/settings/knobs.py",
        "EXIT_MARGIN_SECONDS = 30",
        "EXIT_MARGIN_SECONDS = 0",
        "no time is left for settling",
    ),
    in_drain(
        "D10",
        f"{_BUDGET}d10_a_handler_has_a_timeout_its_own_or_the_knobs",
        "handle.py",
        "(handler.timeout_seconds or self.setup.knobs.handler_timeout_seconds)",
        "self.setup.knobs.handler_timeout_seconds",
        "a handler's own timeout is ignored",
    ),
    in_drain(
        "D10",
        f"{_BUDGET}d10_past_the_last_instant_of_handlers_nothing_is_claimed_to_be_given_back",
        "budget.py",
        "return now < min(self.claim_until, self.handlers_until)",
        "return now < self.claim_until",
        "messages are claimed that have no time left",
    ),
)
