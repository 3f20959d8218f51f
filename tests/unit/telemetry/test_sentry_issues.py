"""What becomes an issue, and what is the same issue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sentry_sdk

from fairlease import Dead, RateLimited, Retry, Snooze
from fairlease.errors import TransientError
from fairlease.events import (
    CancellationSwallowed,
    Degraded,
    Event,
    FunctionEnded,
    FunctionStarted,
    HandlerCancelled,
    HandlerEnded,
    LoopBlocked,
    OutcomeChanged,
    PokeAnswered,
    QueueAlarm,
    RunEnded,
    RunFailed,
    RunStarted,
    SettleFailed,
)
from fairlease.settings import load_settings
from fairlease.telemetry.sentry_issues import MOST_PER_MINUTE

if TYPE_CHECKING:
    from unit.telemetry.conftest import Start
    from unit.telemetry.ingest import Ingest


def ended(
    outcome: str, error: BaseException | None, method: str = "m", msg_id: int = 1, crashes: int = 0
) -> HandlerEnded:
    return HandlerEnded("r", "q", "a", method, msg_id, 1, outcome, 0.1, error, crashes)


def groups(received: Ingest) -> list[list[str]]:
    sentry_sdk.flush(5)
    return [event["fingerprint"] for event in received.events]


def test_messages_group_by_method_and_kind_of_error_and_not_by_message(
    start: Start, received: Ingest
) -> None:
    sentry = start()
    for msg_id, error in enumerate([ValueError("a"), ValueError("b"), TransientError("x")]):
        sentry.observe(ended("RetryLater", error, msg_id=msg_id))
    sentry.observe(ended("RetryLater", ValueError("a"), method="other"))
    sentry.observe(ended("DeadLetter", None, crashes=6))
    assert groups(received) == [
        ["fairlease", "message", "m", "ValueError"],
        ["fairlease", "message", "m", "ValueError"],
        ["fairlease", "message", "m", "fairlease.errors.TransientError"],
        ["fairlease", "message", "other", "ValueError"],
        ["fairlease", "message", "m", "crashed"],
    ]


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        ("Done", None),
        ("GiveBack", ValueError()),
        ("RetryLater", Retry(after=3)),
        ("SnoozeUntil", Snooze(5)),
        ("SnoozeUntil", RateLimited(5)),
    ],
)
def test_what_a_handler_asked_for_is_no_issue(
    start: Start, received: Ingest, outcome: str, error: BaseException | None
) -> None:
    start().observe(ended(outcome, error))
    assert groups(received) == []


def test_a_dead_letter_is_one_even_if_the_handler_asked_for_it(
    start: Start, received: Ingest
) -> None:
    start().observe(ended("DeadLetter", Dead("no such repository")))
    assert len(groups(received)) == 1
    assert received.events[0]["tags"]["outcome"] == "dead"


def test_a_handler_that_was_told_to_end_is_grouped_by_why(start: Start, received: Ingest) -> None:
    sentry = start()
    sentry.observe(HandlerCancelled("r", "q", "a", 1, "timeout"))
    sentry.observe(ended("RetryLater", ValueError()))
    sentry.observe(ended("RetryLater", ValueError(), msg_id=2))
    assert [group[-1] for group in groups(received)] == ["timeout", "ValueError"]


def test_a_failed_run_is_one_event_wherever_it_is_said(start: Start, received: Ingest) -> None:
    sentry, fault = start(), ZeroDivisionError()
    sentry.observe(FunctionStarted("r", "worker"))
    sentry.observe(RunStarted("r", ("q",), "d", 1.0))
    sentry.observe(RunFailed("r", "ZeroDivisionError", fault))
    sentry.observe(RunEnded("r", "failed", 0, 0, 1.0, ()))
    sentry.observe(FunctionEnded("r", "worker", 1.0, fault))
    sentry.observe(FunctionStarted("s", "task"))
    sentry.observe(FunctionEnded("s", "task", 1.0, KeyError()))
    assert groups(received) == [
        ["fairlease", "run", "ZeroDivisionError"],
        ["fairlease", "run", "KeyError"],
    ]
    assert [event["tags"]["function"] for event in received.events] == ["worker", "task"]


@pytest.mark.parametrize(
    ("event", "group"),
    [
        (CancellationSwallowed("r", "q", 7, "timeout"), ["cancellation_swallowed", "q", "timeout"]),
        (LoopBlocked("r", 2.0, "stack", "m of message 7"), ["loop_blocked", "m"]),
        (OutcomeChanged("r", "q", 7, "the archive is missing"), ["outcome_changed", "q"]),
        (QueueAlarm("r", "q", "ready", 9, 8, "add hosts"), ["queue_alarm", "q", "ready"]),
        (SettleFailed("r", "q", (1,), "error", final=True), ["settle_failed", "q"]),
    ],
)
def test_what_a_person_should_look_at_is_an_issue_with_its_fields(
    start: Start, received: Ingest, event: Event, group: list[str]
) -> None:
    start().observe(event)
    assert groups(received) == [["fairlease", *group]]
    assert received.events[0]["extra"]["run_id"] == "r"


def test_what_passes_by_itself_is_told_with_the_next_issue_of_its_run(
    start: Start, received: Ingest
) -> None:
    sentry = start()
    sentry.observe(RunStarted("r", ("q",), "d", 1.0))
    sentry.observe(SettleFailed("r", "q", (1,), "error", final=False))
    sentry.observe(RunEnded("r", "unreachable", 0, 0, 1.0, ()))
    assert groups(received) == [["fairlease", "run_ended", "unreachable"]]
    (crumb,) = received.events[0]["breadcrumbs"]["values"]
    assert crumb["message"] == "settle_failed"


def test_a_database_that_lacks_a_function_is_said_once_and_not_by_every_run(
    start: Start, received: Ingest
) -> None:
    sentry = start()
    for run_id in ("r", "s"):
        sentry.observe(Degraded(run_id, "heartbeat_org_slot", "short batches"))
    assert groups(received) == [["fairlease", "degraded", "heartbeat_org_slot"]]


def test_each_knob_issue_is_one_issue_by_its_variable(start: Start, received: Ingest) -> None:
    environ = {"FAIRLEASE_MAX_CRASHES": "", "FAIRLEASE_DRAIN_CONCURRENCY": "many"}
    start().report_knob_issues(load_settings(environ).issues)
    assert sorted(groups(received)) == [
        ["fairlease", "knob", "FAIRLEASE_DRAIN_CONCURRENCY", "unparseable"],
        ["fairlease", "knob", "FAIRLEASE_MAX_CRASHES", "empty"],
    ]


def test_every_poke_is_an_ok_check_in_and_brings_the_schedule(
    start: Start, received: Ingest
) -> None:
    sentry = start()
    for schedule, started in (("*/5 * * * *", True), ("*/5 * * * *", False), ("@daily", True)):
        sentry.observe(PokeAnswered("r", "worker", schedule, started))
    sentry_sdk.flush(5)
    found = received.of_type("check_in")
    assert {(one["monitor_slug"], one["status"]) for one in found} == {("worker", "ok")}
    schedules = [one["monitor_config"]["schedule"] for one in found]
    assert [one["type"] for one in schedules] == ["crontab"] * 3
    assert [one["value"] for one in schedules] == ["*/5 * * * *", "*/5 * * * *", "0 0 * * *"]
    assert received.events == []


def test_a_queue_that_fails_as_a_whole_sends_a_minutes_share_and_leaves_others_theirs(
    start: Start, received: Ingest
) -> None:
    sentry = start()
    for msg_id in range(3 * MOST_PER_MINUTE):
        sentry.observe(ended("RetryLater", ValueError(), msg_id=msg_id))
    sentry.observe(ended("RetryLater", KeyError()))
    kinds = [group[-1] for group in groups(received)]
    assert (kinds.count("ValueError"), kinds.count("KeyError")) == (MOST_PER_MINUTE, 1)
