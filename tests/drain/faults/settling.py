"""What became of a message, said once and only of our own."""

from __future__ import annotations

from .fault import in_drain

_SETTLING = "test_settling.py::test_"

FAULTS = (
    in_drain(
        "D19",
        f"{_SETTLING}d19_a_late_heartbeat_about_a_message_that_is_being_settled_is_ignored",
        "watch.py",
        "        for flight in tuple(drain.in_flight.running):\n"
        "            if flight.message.delivery in deliveries:",
        "        for flight in (*drain.in_flight.running, *drain.in_flight._settling):\n"
        "            if flight.message.delivery in deliveries:",
        "a heartbeat is believed about what is being settled",
    ),
    in_drain(
        "D19",
        f"{_SETTLING}d19_a_finished_message_is_extended_until_its_settle_is_answered",
        "flight.py",
        "        self._settling.update(ended)\n        for flight in ended:\n",
        "        self._settling.update(ended)\n        for flight in ended:\n"
        "            self._tracked.pop(flight)\n",
        "what is being settled is not extended",
    ),
    in_drain(
        "D19",
        f"{_SETTLING}d19_lost_about_a_running_message_cancels_it_and_settles_nothing",
        "settle.py",
        "return [flight for flight in ended if not flight.lost]",
        "return list(ended)",
        "another's delivery is settled",
    ),
    in_drain(
        "D19",
        f"{_SETTLING}d19_lost_about_a_running_message_cancels_it_and_settles_nothing",
        "handle.py",
        "            self.cancel(flight, LOST)\n",
        "            pass\n",
        "it runs on beside its successor",
    ),
    in_drain(
        "D19",
        "test_handling.py::"
        "test_a_suspect_delivery_that_is_ours_no_more_never_starts_and_nothing_is_said_of_it",
        "handle.py",
        "            self.hear(flight, answer)\n",
        "            pass\n",
        "a delivery that is another's by now begins",
    ),
    in_drain(
        "D19",
        f"{_SETTLING}d19_a_worker_cut_off_ends_its_handlers_when_their_timeout_is_over",
        "watch.py",
        "if redelivered_at <= now:",
        "if False:",
        "a worker cut off runs on",
    ),
    in_drain(
        "D19",
        f"{_SETTLING}d19_a_worker_cut_off_ends_its_handlers_when_their_timeout_is_over",
        "renew.py",
        "                self.lease.extended_at[delivery] = sent_at\n",
        "                self.lease.extended_at[delivery] = self.setup.clock.monotonic()\n",
        "an extension counts from its answer",
    ),
    in_drain(
        "D19",
        f"{_SETTLING}d19_a_message_that_was_never_extended_counts_from_when_its_claim_was_sent",
        "flight.py",
        "self.lease.extended_at[delivery] = claim_sent_at",
        "self.lease.extended_at[delivery] = self.clock.monotonic()",
        "a claim counts from its answer",
    ),
    in_drain(
        "D19",
        f"{_SETTLING}d19_a_renewal_that_does_not_name_a_delivery_has_not_extended_it",
        "renew.py",
        "delivery.msg_id in answer.extended and delivery in",
        "delivery in",
        "any answer extends all",
    ),
    in_drain(
        "D19",
        f"{_SETTLING}d19_a_handler_that_ignores_its_cancellation_is_reported_and_its_settle_fenced",
        "handle.py",
        "if raised is None and flight.told is not None:",
        "if False:",
        "a swallowed cancellation goes unsaid",
    ),
    in_drain(
        "D29",
        f"{_SETTLING}d29_a_settle_with_claim_of_unknown_outcome_is_repeated_as_a_settle_alone",
        "settle.py",
        "                    self.request(queue, 0),\n",
        "                    self.request(queue, self.setup.knobs.drain_concurrency),\n",
        "the repeat claims again",
    ),
    in_drain(
        "D29",
        f"{_SETTLING}d29_a_claim_of_unknown_outcome_is_not_repeated_and_reported_as_unknown",
        "claim.py",
        "        return error.took_effect is not False\n",
        "        return False\n",
        "an unknown outcome is reported as none",
    ),
    in_drain(
        "D29",
        f"{_SETTLING}d29_a_success_whose_settle_fails_is_never_a_failure_of_its_handler",
        "claim.py",
        "            if together:\n                await self.settling.settle(queue, pending)\n",
        "            if together:\n                self.in_flight.settled(pending)\n",
        "a success whose settle fails is left to run again",
    ),
    in_drain(
        "D29",
        f"{_SETTLING}d29_a_success_whose_settle_fails_is_never_a_failure_of_its_handler",
        "settle.py",
        "except (TransientError, Unauthorized) as error:",
        "except TransientError as error:",
        "a key that is refused for a moment drops a success",
    ),
    in_drain(
        "D29",
        f"{_SETTLING}d29_a_settle_is_repeated_until_the_isolate_ends_and_no_longer",
        "settle.py",
        " or now >= self.setup.budget.isolate_end",
        "",
        "a settle outlives its isolate",
    ),
    in_drain(
        "D29",
        f"{_SETTLING}d29_a_settle_that_never_gets_through_is_left_to_redelivery_and_said",
        "settle.py",
        "self._failed(queue, pending, error, final=final)\n                if final:",
        "self._failed(queue, pending, error, final=False)\n                if final:",
        "the last failure is not said",
    ),
    in_drain(
        "D29",
        f"{_SETTLING}d29_one_outcome_that_is_refused_does_not_keep_its_neighbours_from_being_settled",
        "settle.py",
        "        if len(pending) == 1:\n",
        "        if pending:\n",
        "one refused outcome drops its neighbours",
    ),
)
