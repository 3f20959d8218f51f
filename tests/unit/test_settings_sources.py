from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlease.settings import IssueKind, load_settings
from fairlease.settings.table import as_json, as_markdown

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_environment_wins_over_function_toml_and_that_over_the_fallback() -> None:
    environ = {"FAIRLEASE_DRAIN_CONCURRENCY": "2"}
    assert load_settings(environ, {"drain_concurrency": 3}).knobs.drain_concurrency == 2
    assert load_settings({}, {"drain_concurrency": 3}).knobs.drain_concurrency == 3
    assert load_settings({}).knobs.drain_concurrency == 4


def test_a_rejected_variable_does_not_undo_the_narrower_value_of_the_function() -> None:
    environ = {"FAIRLEASE_DRAIN_CONCURRENCY": "fast"}
    settings = load_settings(environ, {"drain_concurrency": 2})
    assert settings.knobs.drain_concurrency == 2
    assert [i.effective for i in settings.issues] == [2]


def test_the_lifetime_is_also_read_under_the_edge_runtimes_name() -> None:
    knobs = load_settings({"EDGE_WORKER_TIMEOUT_MS": "480000"}).knobs
    assert (knobs.isolate_lifetime_ms, knobs.org_slot_run_budget_seconds) == (480_000, 330)
    ours = {"EDGE_WORKER_TIMEOUT_MS": "480000", "FAIRLEASE_ISOLATE_LIFETIME_MS": "400000"}
    assert load_settings(ours).knobs.isolate_lifetime_ms == 400_000
    botched = {"EDGE_WORKER_TIMEOUT_MS": "200000", "FAIRLEASE_ISOLATE_LIFETIME_MS": ""}
    assert load_settings(botched).knobs.isolate_lifetime_ms == 200_000


def test_a_function_cannot_set_the_lifetime_of_the_process_it_shares() -> None:
    settings = load_settings({}, {"isolate_lifetime_ms": 480_000})
    assert settings.knobs.isolate_lifetime_ms == 400_000
    assert [i.kind for i in settings.issues] == [IssueKind.IGNORED]


@pytest.mark.parametrize(
    ("lifetime_ms", "budget"),
    [(480_000, 330), (400_000, 250), (400_999, 250), (270_000, 120), (200_000, 120)],
)
def test_the_budget_is_the_lifetime_less_one_worst_message_and_the_exit(
    lifetime_ms: int, budget: int
) -> None:
    knobs = load_settings({"FAIRLEASE_ISOLATE_LIFETIME_MS": str(lifetime_ms)}).knobs
    assert knobs.org_slot_run_budget_seconds == budget


@pytest.mark.parametrize(
    ("lifetime_ms", "asked", "budget"),
    [
        (400_000, "250", 250),
        (400_000, "251", 120),
        (480_000, "330", 330),
        (400_000, "330", 120),
        (480_000, "331", 120),
        (400_000, "119", 120),
        (400_000, "180.5", 120),
        (400_000, "off", 120),
        (200_000, "121", 120),
    ],
)
def test_a_budget_outside_its_range_is_the_shortest_one(
    lifetime_ms: int, asked: str, budget: int
) -> None:
    environ = {
        "FAIRLEASE_ISOLATE_LIFETIME_MS": str(lifetime_ms),
        "FAIRLEASE_ORG_SLOT_RUN_BUDGET_SECONDS": asked,
    }
    settings = load_settings(environ)
    assert settings.knobs.org_slot_run_budget_seconds == budget
    taken = str(budget) == asked
    assert taken != any(i.env.endswith("RUN_BUDGET_SECONDS") for i in settings.issues)


@pytest.mark.parametrize(("raw", "on"), [("1", True), ("0", False), ("false", False), ("2", False)])
def test_the_kill_switch_is_read_as_a_number(raw: str, on: bool) -> None:
    knobs = load_settings({"FAIRLEASE_ORG_SLOT_CONTINUOUS_REFILL": raw}).knobs
    assert knobs.refills_continuously is on


def test_a_wider_range_keeps_the_meaning_of_a_configured_switch() -> None:
    wider = load_settings({}).knobs.model_copy(update={"org_slot_continuous_refill": 2})
    assert wider.refills_continuously


def test_a_misspelled_knob_is_reported_with_the_name_that_was_meant() -> None:
    [issue] = load_settings({"FAIRLEASE_DRAIN_CONCURENCY": "2"}).issues
    assert issue.kind is IssueKind.UNKNOWN
    assert "FAIRLEASE_DRAIN_CONCURRENCY" in issue.message


def test_other_variables_of_the_prefix_are_no_business_of_the_knobs() -> None:
    environ = {"FAIRLEASE_DATABASE_URL": "x", "FAIRLEASE_TRANSPORT": "y", "PATH": "z"}
    assert load_settings(environ).issues == ()


def test_an_issue_is_one_printable_line_of_bounded_length_and_valid_json() -> None:
    raw = "a\nb\udcff\x00" + "x" * 5000
    [issue] = load_settings({"FAIRLEASE_MAX_CRASHES": raw}).issues
    line = json.dumps(issue.as_json()).encode()
    assert len(line) < 700
    assert "\n" not in issue.message
    assert issue.message.encode()


def test_the_documented_table_is_the_one_in_the_code() -> None:
    assert PAGE.read_text() == as_markdown(), "run: fairlease settings --markdown"


def test_the_table_for_the_chart_names_every_knob_twice_as_people_write_it() -> None:
    by_camel = {entry["camel"]: entry["env"] for entry in as_json()}
    assert by_camel["orgSlotRunBudgetSeconds"] == "FAIRLEASE_ORG_SLOT_RUN_BUDGET_SECONDS"
    assert by_camel["drainConcurrency"] == "FAIRLEASE_DRAIN_CONCURRENCY"
    assert len(by_camel) == len(load_settings({}).knobs.model_dump())
