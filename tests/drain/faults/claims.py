"""Which claims are sent, and as what."""

from __future__ import annotations

from .fault import Fault, in_drain

_CLAIMING = "test_claiming.py::test_"
_ROTATION = "test_rotation.py::test_"

FAULTS = (
    in_drain(
        "D1",
        f"{_CLAIMING}d1_with_nothing_in_flight_every_queue_is_probed_unpinned_in_priority_order",
        "rotate.py",
        "for queue in tuple(drain.claiming.queues):",
        "for queue in tuple(reversed(drain.claiming.queues)):",
        "queues are probed from the lowest priority",
    ),
    in_drain(
        "D1",
        f"{_CLAIMING}d1_with_nothing_in_flight_the_run_moves_on_to_another_org",
        "rotate.py",
        "drain.claiming.claim(queue, drain.n, ended=ended)",
        "drain.claiming.claim(queue, drain.n, pin=drain.lease.org, ended=ended)",
        "the pin stays when nothing is in flight",
    ),
    in_drain(
        "D2",
        f"{_CLAIMING}d2_with_work_in_flight_a_claim_is_pinned_to_the_held_org_and_queue",
        "refill.py",
        "claim(queue, shortfall, pin=org, ended=ended)",
        "claim(queue, shortfall, pin=None, ended=ended)",
        "top-ups are not pinned",
    ),
    in_drain(
        "D2",
        f"{_CLAIMING}d2_a_busy_run_never_frees_its_org_for_a_second_holder",
        "refill.py",
        "claim(queue, shortfall, pin=org, ended=ended)",
        "claim(queue, shortfall, pin=None, ended=ended)",
        "top-ups are not pinned",
    ),
    in_drain(
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
    in_drain(
        "D5",
        f"{_CLAIMING}d5_a_pinned_answer_of_another_org_is_an_error_and_its_messages_are_kept",
        "claim.py",
        "if pin is not None and org != pin:",
        "if False:",
        "another org in a pinned answer goes unnoticed",
    ),
    in_drain(
        "D5",
        f"{_CLAIMING}d5_a_pinned_answer_of_another_org_is_an_error_and_its_messages_are_kept",
        "claim.py",
        "                self.setup.observe(PinViolated(self.setup.run_id, queue, pin, org))\n",
        "                self.setup.observe(PinViolated(self.setup.run_id, queue, pin, org))\n"
        "                return\n",
        "its messages are dropped",
    ),
    in_drain(
        "D6",
        f"{_ROTATION}d6_a_waiting_org_is_served_within_one_quantum",
        "quantum.py",
        "return max(0, self.refills * self.n * self.stretch - self.taken)",
        "return 1_000_000",
        "the quantum never ends",
    ),
    in_drain(
        "D7",
        f"{_ROTATION}d7_a_lone_org_is_reconsidered_after_ever_larger_quanta_up_to_four_times",
        "quantum.py",
        "self.stretch * 2)",
        "self.stretch)",
        "the quantum of a lone org does not double",
    ),
    in_drain(
        "D7",
        f"{_ROTATION}d7_a_lone_org_is_reconsidered_after_ever_larger_quanta_up_to_four_times",
        "quantum.py",
        "LONGEST_STRETCH = 4",
        "LONGEST_STRETCH = 64",
        "it doubles without end",
    ),
    in_drain(
        "D7",
        f"{_ROTATION}d7_a_rotation_resets_the_quantum",
        "quantum.py",
        "            self.stretch = 1\n",
        "            pass\n",
        "a rotation keeps the long quantum",
    ),
    in_drain(
        "entry",
        f"{_CLAIMING}a_driver_refuses_another_bound_than_the_runs_before_it_claims",
        "run.py",
        "if max_in_flight != self.n:",
        "if False:",
        "any bound is taken",
    ),
    in_drain(
        "entry",
        f"{_CLAIMING}a_driver_refuses_a_run_that_does_not_track_what_is_in_flight",
        "run.py",
        "if any(part.in_flight is not self.in_flight for part in parts):",
        "if False:",
        "an untracked run is taken",
    ),
    in_drain(
        "entry",
        f"{_CLAIMING}a_shortfall_that_is_no_whole_number_never_reaches_the_wire",
        "claim.py",
        "if type(n) is not int or n < 1:",
        "if n < 1:",
        "a fraction is claimed",
    ),
    in_drain(
        "D17",
        f"{_CLAIMING}d17_every_queue_that_was_claimed_from_is_released",
        "release.py",
        "queues = sorted(self.lease.maybe_held)",
        "queues = [self.lease.queue] if self.lease.queue else []",
        "only the last queue is released",
    ),
    in_drain(
        "D17",
        f"{_CLAIMING}d17_only_an_answer_that_proves_that_nothing_was_taken_saves_the_release",
        "claim.py",
        "NOTHING_TAKEN = (ClaimStatus.NO_DEMAND, ClaimStatus.ORG_CAPACITY)",
        "NOTHING_TAKEN = tuple(ClaimStatus)",
        "no_capacity counts as proof",
    ),
    in_drain(
        "D17",
        f"{_CLAIMING}d17_a_slot_that_was_held_before_is_released_whatever_the_last_answer",
        "claim.py",
        "if was_free and answer.status in NOTHING_TAKEN:",
        "if answer.status in NOTHING_TAKEN:",
        "an empty answer forgets the slot that was held",
    ),
    in_drain(
        "D17",
        "test_observers.py::"
        "test_d17_a_run_that_fails_releases_its_slot_and_keeps_it_until_its_work_is_settled",
        "run.py",
        "            await self._let_go()\n            raise\n",
        "            raise\n",
        "a run that fails keeps its slot",
    ),
    in_drain(
        "D12",
        "test_observers.py::"
        "test_d17_a_run_that_fails_releases_its_slot_and_keeps_it_until_its_work_is_settled",
        "claim.py",
        "            self.lease.claim_answered()\n",
        "            if not isinstance(__import__('sys').exc_info()[1], KeyError):\n"
        "                self.lease.claim_answered()\n",
        "a claim that raised stays on the wire",
    ),
)
