"""What the host, the transports and the bundled function keep."""

from __future__ import annotations

from .fault import Fault, in_drain

_CALLS = "test_calls.py::test_"

FAULTS = (
    Fault(
        "D28",
        "tests/drain/test_one_run.py::"
        "test_d28_a_second_poke_finds_the_run_of_its_function_and_starts_none",
        "fairlease/host/runs.py",
        "if live := self._live.get(folder.name):",
        "if live := None:",
        "a second poke starts a second run",
    ),
    in_drain(
        "D30",
        f"{_CALLS}d30_the_deadline_of_a_call_is_within_the_lease_and_the_rest_of_the_isolate",
        "setup.py",
        "min(LONGEST_CALL_SECONDS, lease_share, isolate_rest / 2)",
        "LONGEST_CALL_SECONDS",
        "a call may outlast the isolate",
    ),
    Fault(
        "D30",
        f"tests/drain/{_CALLS}d30_on_expiry_the_call_is_abandoned_and_its_client_retired",
        "fairlease/transports/deadline.py",
        "    if not done:\n        _abandon(task)\n        retire()\n",
        "    if not done:\n        _abandon(task)\n",
        "a client that hangs is kept",
    ),
    Fault(
        "D30",
        f"tests/drain/{_CALLS}d30_a_call_whose_caller_is_cancelled_takes_its_client_with_it",
        "fairlease/transports/deadline.py",
        "        retire()\n        raise\n",
        "        raise\n",
        "a cancelled request leaks its pool slot",
    ),
    in_drain(
        "D30",
        f"{_CALLS}d30_a_cancelled_handler_does_not_cancel_the_call_that_was_made_for_it",
        "flight.py",
        "        if self.context is not None:\n            self.context.cancelled = True\n",
        "        if True:\n",
        "a call dies with the handler it is for",
    ),
    in_drain(
        "D30",
        f"{_CALLS}d30_what_a_handler_calls_goes_through_although_the_handler_is_cancelled",
        "handle.py",
        "await asyncio.shield(whole)",
        "await whole",
        "a handler's own call dies with it",
    ),
    in_drain(
        "D30",
        f"{_CALLS}d30_what_a_cancelled_handler_called_may_fail_without_a_traceback",
        "handle.py",
        "    whole.add_done_callback(",
        "    str(",
        "a call that fails late is a traceback",
    ),
    in_drain(
        "D30",
        f"{_CALLS}d30_what_a_handler_calls_has_the_deadline_of_every_call",
        "handle.py",
        "                timeout_seconds=setup.call_seconds(),\n",
        "",
        "a handler's send may take half a minute",
    ),
    Fault(
        "D31",
        f"tests/drain/{_CALLS}d31_a_code_of_any_type_has_its_branch",
        "fairlease/transports/codec.py",
        'text = "" if code is None else str(code)',
        'text = code if isinstance(code, str) else ""',
        "a numeric code has no branch",
    ),
    Fault(
        "D31",
        f"tests/drain/{_CALLS}d31_a_success_with_a_strange_body_is_transient_and_never_a_crash",
        "fairlease/transports/codec.py",
        "    except (AttributeError, LookupError, TypeError, ValueError) as error:\n",
        "    except LookupError as error:\n",
        "a page of HTML is read as an answer",
    ),
    Fault(
        "D32",
        "tests/handlers/github_worker/test_own_org.py::"
        "test_the_client_itself_refuses_another_organization",
        "github_worker/client.py",
        "if called.lower() != org.lower():",
        "if False:",
        "another organization is called",
    ),
)
