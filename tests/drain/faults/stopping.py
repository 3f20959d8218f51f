"""A run that is told to stop."""

from __future__ import annotations

from .fault import in_drain

_STOPPING = "test_stopping.py::test_"

_GIVES_BACK = """\
            if self.refusal() is not None:
                self.handling.give_back(flight)
"""

FAULTS = (
    in_drain(
        "D20",
        f"{_STOPPING}d20_a_stop_ends_claiming_at_once_and_lets_work_in_flight_finish",
        "run.py",
        "        self.claiming.stopping = self.claiming.stopping or reason\n",
        "",
        "a stop is not heard",
    ),
    in_drain(
        "D20",
        f"{_STOPPING}d20_a_claim_on_the_wire_is_awaited_and_given_back_unstarted",
        "claim.py",
        _GIVES_BACK,
        _GIVES_BACK.replace("self.refusal() is not None", "False"),
        "what a late claim brings is started",
    ),
    in_drain(
        "D20",
        f"{_STOPPING}d20_a_claim_on_the_wire_when_the_budget_ends_is_given_back_too",
        "claim.py",
        _GIVES_BACK,
        _GIVES_BACK.replace("self.refusal() is not None", "self.stopping"),
        "only a stop gives back",
    ),
    in_drain(
        "D20",
        f"{_STOPPING}d20_ten_seconds_before_the_grace_ends_handlers_are_cancelled_and_given_back",
        "run.py",
        "SETTLING_SECONDS = 10.0",
        "SETTLING_SECONDS = 0.0",
        "handlers are cancelled at the kill",
    ),
    in_drain(
        "D20",
        f"{_STOPPING}d20_what_has_not_ended_is_named_and_left_and_the_slot_lapses",
        "run.py",
        "        self._later(ENDING_SECONDS, self.in_flight.abandon)\n",
        "        for flight in tuple(self.in_flight.running):\n"
        "            self._later(ENDING_SECONDS, partial(self.handling.give_back, flight))\n",
        "what still runs is given back",
    ),
    in_drain(
        "D20",
        f"{_STOPPING}d20_a_handler_that_cleans_up_before_it_ends_is_given_back_then",
        "run.py",
        "ENDING_SECONDS = 5.0",
        "ENDING_SECONDS = 0.0",
        "nobody waits for a handler to clean up",
    ),
    in_drain(
        "D20",
        f"{_STOPPING}d20_a_stop_wakes_an_idle_run",
        "run.py",
        "        self.setup.woken.set()\n",
        "",
        "an idle run sleeps through its stop",
    ),
    in_drain(
        "D20",
        f"{_STOPPING}d20_a_timeout_that_was_ignored_stays_a_failure_when_the_run_is_stopped",
        "flight.py",
        "self.cancel_reason = self.cancel_reason or reason",
        "self.cancel_reason = reason",
        "a timeout is given back because a stop came after it",
    ),
    in_drain(
        "D20",
        f"{_STOPPING}d20_what_a_handler_decides_when_it_is_told_to_end_is_heard",
        "handle.py",
        "            case _ if isinstance(raised, Verdict):\n                pass\n",
        "",
        "a verdict of a cancelled handler is thrown away",
    ),
)
