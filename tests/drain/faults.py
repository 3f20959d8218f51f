"""For each rule of the drain engine: a test, and faults in the source that turn it red.

A fault is the smallest edit that breaks the rule; `rules.py` plants it in memory and runs the test.
"""

from __future__ import annotations

from dataclasses import dataclass

DRAIN = "fairlease/drain"


@dataclass(frozen=True, slots=True)
class Fault:
    """`before` must stand exactly once in the file (below `functions/`)."""

    rule: str
    test: str
    file: str
    before: str
    after: str
    what: str


def _in_drain(rule: str, test: str, file: str, before: str, after: str, what: str) -> Fault:
    return Fault(rule, f"tests/drain/{test}", f"{DRAIN}/{file}", before, after, what)


_CLAIMING = "test_claiming.py::test_"
_ROTATION = "test_rotation.py::test_"
_BUDGET = "test_budget.py::test_"
_RENEWAL = "test_renewal.py::test_"
_HOLDER = "test_holder.py::test_"
_STALL = "test_stall.py::test_"
_SETTLING = "test_settling.py::test_"
_STOPPING = "test_stopping.py::test_"
_SKEW = "test_skew.py::test_"
_OBSERVERS = "test_observers.py::test_"
_CALLS = "test_calls.py::test_"
_THREADS = "test_real_threads.py::test_"

CLAIMS = (
    _in_drain(
        "D1",
        f"{_CLAIMING}d1_with_nothing_in_flight_every_queue_is_probed_unpinned_in_priority_order",
        "rotate.py",
        "for queue in tuple(drain.claiming.queues):",
        "for queue in tuple(reversed(drain.claiming.queues)):",
        "queues are probed from the lowest priority",
    ),
    _in_drain(
        "D1",
        f"{_CLAIMING}d1_with_nothing_in_flight_the_run_moves_on_to_another_org",
        "rotate.py",
        "drain.claiming.claim(queue, drain.n, ended=ended)",
        "drain.claiming.claim(queue, drain.n, pin=drain.lease.org, ended=ended)",
        "the pin stays when nothing is in flight",
    ),
    _in_drain(
        "D2",
        f"{_CLAIMING}d2_with_work_in_flight_a_claim_is_pinned_to_the_held_org_and_queue",
        "refill.py",
        "claim(queue, shortfall, pin=org, ended=ended)",
        "claim(queue, shortfall, pin=None, ended=ended)",
        "top-ups are not pinned",
    ),
    _in_drain(
        "D2",
        f"{_CLAIMING}d2_a_busy_run_never_frees_its_org_for_a_second_holder",
        "refill.py",
        "claim(queue, shortfall, pin=org, ended=ended)",
        "claim(queue, shortfall, pin=None, ended=ended)",
        "top-ups are not pinned",
    ),
    _in_drain(
        "D3",
        f"{_ROTATION}d3_a_low_priority_backlog_does_not_outlive_an_urgent_message",
        "refill.py",
        "drain.lease.queue != drain.claiming.queues[0]",
        "drain.lease.queue not in drain.claiming.queues",
        "every queue is streamed",
    ),
    Fault(
        "D4",
        f"tests/drain/{_CLAIMING}d4_unpinned_the_key_is_absent_and_not_null",
        "fairlease/transports/codec.py",
        "if request.pin_org is not None:",
        "if True:",
        "an unpinned claim sends null",
    ),
    _in_drain(
        "D5",
        f"{_CLAIMING}d5_a_pinned_answer_of_another_org_is_an_error_and_its_messages_are_kept",
        "claim.py",
        "if pin is not None and org != pin:",
        "if False:",
        "another org in a pinned answer goes unnoticed",
    ),
    _in_drain(
        "D5",
        f"{_CLAIMING}d5_a_pinned_answer_of_another_org_is_an_error_and_its_messages_are_kept",
        "claim.py",
        "                self.setup.observe(PinViolated(self.setup.run_id, queue, pin, org))\n",
        "                self.setup.observe(PinViolated(self.setup.run_id, queue, pin, org))\n"
        "                return\n",
        "its messages are dropped",
    ),
    _in_drain(
        "D6",
        f"{_ROTATION}d6_a_waiting_org_is_served_within_one_quantum",
        "quantum.py",
        "return max(0, self.refills * self.n * self.stretch - self.taken)",
        "return 1_000_000",
        "the quantum never ends",
    ),
    _in_drain(
        "D7",
        f"{_ROTATION}d7_a_lone_org_is_reconsidered_after_ever_larger_quanta_up_to_four_times",
        "quantum.py",
        "self.stretch * 2)",
        "self.stretch)",
        "the quantum of a lone org does not double",
    ),
    _in_drain(
        "D7",
        f"{_ROTATION}d7_a_lone_org_is_reconsidered_after_ever_larger_quanta_up_to_four_times",
        "quantum.py",
        "LONGEST_STRETCH = 4",
        "LONGEST_STRETCH = 64",
        "it doubles without end",
    ),
    _in_drain(
        "D7",
        f"{_ROTATION}d7_a_rotation_resets_the_quantum",
        "quantum.py",
        "            self.stretch = 1\n",
        "            pass\n",
        "a rotation keeps the long quantum",
    ),
    _in_drain(
        "entry",
        f"{_CLAIMING}a_driver_refuses_another_bound_than_the_runs_before_it_claims",
        "run.py",
        "if max_in_flight != self.n:",
        "if False:",
        "any bound is taken",
    ),
    _in_drain(
        "entry",
        f"{_CLAIMING}a_driver_refuses_a_run_that_does_not_track_what_is_in_flight",
        "run.py",
        "if any(part.in_flight is not self.in_flight for part in parts):",
        "if False:",
        "an untracked run is taken",
    ),
    _in_drain(
        "entry",
        f"{_CLAIMING}a_shortfall_that_is_no_whole_number_never_reaches_the_wire",
        "claim.py",
        "if type(n) is not int or n < 1:",
        "if n < 1:",
        "a fraction is claimed",
    ),
    _in_drain(
        "D17",
        f"{_CLAIMING}d17_every_queue_that_was_claimed_from_is_released",
        "release.py",
        "queues = sorted(self.lease.maybe_held)",
        "queues = [self.lease.queue] if self.lease.queue else []",
        "only the last queue is released",
    ),
    _in_drain(
        "D17",
        f"{_CLAIMING}d17_only_an_answer_that_proves_that_nothing_was_taken_saves_the_release",
        "claim.py",
        "NOTHING_TAKEN = (ClaimStatus.NO_DEMAND, ClaimStatus.ORG_CAPACITY)",
        "NOTHING_TAKEN = tuple(ClaimStatus)",
        "no_capacity counts as proof",
    ),
    _in_drain(
        "D17",
        f"{_CLAIMING}d17_a_slot_that_was_held_before_is_released_whatever_the_last_answer",
        "claim.py",
        "if was_free and answer.status in NOTHING_TAKEN:",
        "if answer.status in NOTHING_TAKEN:",
        "an empty answer forgets the slot that was held",
    ),
)

BOUNDS = (
    _in_drain(
        "D8",
        f"{_BUDGET}d8_every_run_of_a_process_inherits_the_same_instant",
        "budget.py",
        "anchor = ISOLATE_STARTED_AT if",
        "anchor = SystemClock().monotonic() if",
        "the budget counts from the poke",
    ),
    _in_drain(
        "D8",
        f"{_BUDGET}d8_anything_but_a_positive_finite_number_is_refused",
        "budget.py",
        "if isinstance(value, bool) or not math.isfinite(value) or value <= 0:",
        "if value < 0:",
        "0, NaN and infinity are budgets",
    ),
    _in_drain(
        "D8",
        f"{_BUDGET}d8_an_injected_clock_needs_its_own_anchor",
        "budget.py",
        "if clock is not None and isolate_started_at is None:",
        "if False:",
        "two clocks are mixed",
    ),
    _in_drain(
        "D9",
        f"{_BUDGET}d9_past_the_budget_nothing_is_claimed_and_work_in_flight_finishes",
        "claim.py",
        "if not self.setup.budget.allows_claim(self.setup.clock.monotonic()):",
        "if False:",
        "the budget is not asked",
    ),
    _in_drain(
        "D9",
        f"{_BUDGET}d9_a_settle_that_outlasts_the_budget_is_followed_by_no_claim",
        "claim.py",
        "            if self.refusal() is not None:\n                return None\n",
        "",
        "the gate is asked only before the settle",
    ),
    _in_drain(
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
    _in_drain(
        "D10",
        f"{_BUDGET}d10_a_handler_has_a_timeout_its_own_or_the_knobs",
        "handle.py",
        "(handler.timeout_seconds or self.setup.knobs.handler_timeout_seconds)",
        "self.setup.knobs.handler_timeout_seconds",
        "a handler's own timeout is ignored",
    ),
    _in_drain(
        "D10",
        f"{_BUDGET}d10_past_the_last_instant_of_handlers_nothing_is_claimed_to_be_given_back",
        "budget.py",
        "return now < min(self.claim_until, self.handlers_until)",
        "return now < self.claim_until",
        "messages are claimed that have no time left",
    ),
)

KEEPING = (
    _in_drain(
        "D11",
        f"{_THREADS}d11_a_handler_that_blocks_the_loop_for_three_ttls_keeps_its_lease_and_is_named",
        "renew.py",
        "            await self._renewal_for(rpc, self._report).keep()\n",
        "            await asyncio.Event().wait()\n",
        "the thread does not renew",
    ),
    _in_drain(
        "D11",
        f"{_THREADS}d11_a_handler_that_blocks_the_loop_for_three_ttls_keeps_its_lease_and_is_named",
        "watchdog.py",
        "self._said.add(task)",
        "pass",
        "a blocking handler is said ten times",
    ),
    _in_drain(
        "D11",
        f"{_RENEWAL}d11_the_lease_is_renewed_every_third_of_its_ttl",
        "renew.py",
        "BEATS_PER_TTL = 3",
        "BEATS_PER_TTL = 1",
        "one renewal a TTL",
    ),
    _in_drain(
        "D11",
        f"{_RENEWAL}d11_a_renewal_that_failed_is_repeated_long_before_the_lease_lapses",
        "renew.py",
        "RETRY_SHARE = 0.25",
        "RETRY_SHARE = 1.0",
        "a failed renewal waits for the next turn",
    ),
    _in_drain(
        "D12",
        f"{_RENEWAL}d12_a_renewal_that_overlaps_a_claim_is_repeated_and_never_believed",
        "renew.py",
        "not before.claim_on_the_wire and before.generation == self.lease.snapshot.generation",
        "True",
        "an overlapped renewal is believed",
    ),
    _in_drain(
        "D12",
        f"{_RENEWAL}d12_a_renewal_that_overlaps_a_claim_is_repeated_and_never_believed",
        "renew.py",
        "return 1.0 if believed else REPEAT_SHARE",
        "return 1.0",
        "an overlapped renewal is not repeated",
    ),
    _in_drain(
        "D12",
        f"{_RENEWAL}d12_a_renewal_that_overlaps_nothing_is_believed",
        "renew.py",
        "        elif believed:\n            self.lease.lost_holder = before.holder\n",
        "",
        "the database's no is never believed",
    ),
    _in_drain(
        "D13",
        f"{_HOLDER}d13_after_a_release_the_next_claim_has_the_next_name",
        "lease.py",
        "self._serial += 1",
        "self._serial += 0",
        "a released name is used again",
    ),
    _in_drain(
        "D13",
        f"{_HOLDER}d13_a_release_that_arrives_late_does_not_free_the_next_lease",
        "lease.py",
        "self._serial += 1",
        "self._serial += 0",
        "a released name is used again",
    ),
    _in_drain(
        "D13",
        f"{_HOLDER}d13_a_claim_of_unknown_outcome_is_released_and_its_name_not_used_again",
        "rotate.py",
        "if outcome_is_unknown(error):",
        "if False:",
        "an unknown claim keeps its name",
    ),
    _in_drain(
        "D14",
        f"{_RENEWAL}d14_a_finished_run_with_work_in_flight_keeps_renewing_and_holds_its_slot",
        "refill.py",
        "        _say_skipped(drain, refusal)\n",
        "        _say_skipped(drain, refusal)\n        await drain.releasing.release()\n",
        "the slot goes as soon as claiming stops",
    ),
    _in_drain(
        "D15",
        f"{_RENEWAL}d15_with_the_lease_lost_no_work_begins_and_what_runs_is_still_extended",
        "refill.py",
        "if drain.lease.is_lost(now):",
        "if False:",
        "a lost lease is topped up",
    ),
    _in_drain(
        "D15",
        f"{_RENEWAL}d15_no_renewal_for_a_ttl_is_a_lost_lease_counted_from_the_last_good_one",
        "lease.py",
        "self.lost_holder == self.holder or now >= self.lapses_at",
        "self.lost_holder == self.holder",
        "silence is no loss",
    ),
    _in_drain(
        "D15",
        f"{_RENEWAL}d15_an_operator_may_have_handlers_cancelled_with_the_lease",
        "watch.py",
        "if drain.setup.cancel_on_lost_lease:",
        "if False:",
        "cancel_on_lost_lease does nothing",
    ),
    _in_drain(
        "D16",
        f"{_STALL}d16_without_progress_handlers_are_cancelled_settled_and_the_slot_released",
        "watch.py",
        "        drain.cancel_handlers(STALLED)\n",
        "        pass\n",
        "a stall is not noticed",
    ),
    _in_drain(
        "D16",
        f"{_STALL}d16_a_handler_that_says_so_makes_progress",
        "handle.py",
        "            on_progress=self.in_flight.progress,\n",
        "",
        "ctx.progress() is not heard",
    ),
    _in_drain(
        "D16",
        f"{_STALL}d16_a_settle_of_another_message_is_progress",
        "flight.py",
        "            self.lease.extended_at.pop(flight.message.delivery, None)\n"
        "        self.progress()\n",
        "            self.lease.extended_at.pop(flight.message.delivery, None)\n",
        "a settle is no progress",
    ),
    _in_drain(
        "D16",
        f"{_STALL}d16_a_handler_that_does_not_end_keeps_the_slot_from_being_released",
        "run.py",
        "if not self.in_flight.running:\n                    await self.releasing.release()",
        "if True:\n                    await self.releasing.release()",
        "the slot goes while a handler runs",
    ),
    _in_drain(
        "D16",
        f"{_STALL}d16_a_handler_that_does_not_end_keeps_the_slot_from_being_released",
        "run.py",
        'setup.end_process("handlers stand still and do not end")',
        "pass",
        "the process goes on",
    ),
    Fault(
        "D16",
        "tests/unit/drain/test_watchdog.py::"
        "test_d16_a_loop_that_stands_still_is_given_up_its_lease_lapses_and_the_process_ends",
        f"{DRAIN}/watchdog.py",
        "if blocked >= self.setup.knobs.max_stall_seconds:",
        "if False:",
        "a blocked loop is waited for",
    ),
    Fault(
        "D16",
        "tests/unit/drain/test_watchdog.py::"
        "test_d16_the_process_ends_at_the_wall_clock_of_the_isolate_even_if_the_loop_steps",
        f"{DRAIN}/watchdog.py",
        "if now >= self.setup.budget.isolate_end:",
        "if False:",
        "the wall clock passes",
    ),
    _in_drain(
        "D18",
        f"{_RENEWAL}d18_every_renewal_extends_all_that_is_in_flight_by_the_visibility_timeout",
        "renew.py",
        "            snapshot.deliveries,\n",
        "            (),\n",
        "only the slot is renewed",
    ),
    _in_drain(
        "D18",
        f"{_RENEWAL}d18_after_a_kill_messages_are_back_within_a_visibility_timeout",
        "renew.py",
        "            knobs.visibility_timeout_seconds,\n            snapshot.deliveries,\n",
        "            knobs.isolate_lifetime_seconds,\n            snapshot.deliveries,\n",
        "messages are hidden for an isolate's life",
    ),
)
