"""The run budget and the isolate's life, as an operator meets them on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from chart.helm import Helm

BUDGET = "FAIRLEASE_ORG_SLOT_RUN_BUDGET_SECONDS"
KNOB = "knobs.orgSlotRunBudgetSeconds"


def test_the_default_emits_no_budget(helm: Helm) -> None:
    answer = helm.template()
    assert answer.returncode == 0
    assert "BUDGET" not in answer.stdout


@pytest.mark.parametrize("form", ["--set", "--set-string", "--set-json"])
def test_180_renders_through_as_a_quoted_string(helm: Helm, form: str) -> None:
    answer = helm.template(form, f"{KNOB}=180")
    assert f'{BUDGET}: "180"' in answer.stdout


@pytest.mark.parametrize(
    ("budget", "lifetime_ms"), [(250, 400_000), (330, 480_000), (120, 200_000), (120, 400_000)]
)
def test_a_budget_that_leaves_the_reserve_is_accepted(
    helm: Helm, budget: int, lifetime_ms: int
) -> None:
    flags = ("--set", f"{KNOB}={budget},worker.timeoutMs={lifetime_ms}")
    environment = helm.environment(*flags)
    assert environment[BUDGET] == str(budget)
    assert environment["FAIRLEASE_ISOLATE_LIFETIME_MS"] == str(lifetime_ms)


@pytest.mark.parametrize(
    ("budget", "lifetime_ms", "longest", "needed_ms"),
    [
        (251, 400_000, 250, 401_000),
        (330, 400_000, 250, 480_000),
        (331, 480_000, 330, 481_000),
        (121, 200_000, 120, 271_000),
    ],
)
def test_a_longer_budget_is_refused_with_the_arithmetic_and_the_remedies(
    helm: Helm, budget: int, lifetime_ms: int, longest: int, needed_ms: int
) -> None:
    said = helm.refusal("--set", f"{KNOB}={budget},worker.timeoutMs={lifetime_ms}")
    assert f"{KNOB}={budget} is above {longest}" in said
    assert f"max(120, floor({lifetime_ms} / 1000) - 150)" in said
    assert f"worker.timeoutMs={lifetime_ms}" in said
    assert f"raise worker.timeoutMs to {needed_ms} or more" in said
    assert "or remove the knob" in said


@pytest.mark.parametrize("raw", ["0", "119", "-1", "180.5", "off", "true", "1e3", "0x80", " "])
def test_what_is_no_budget_is_refused(helm: Helm, raw: str) -> None:
    said = helm.refusal("--set", f"{KNOB}={raw}")
    assert KNOB in said
    assert raw in said
    assert "give 120 to 250" in said


@pytest.mark.parametrize("raw", ["180.5", "[180]", '{"seconds": 180}', "true", '"off"'])
def test_of_any_type(helm: Helm, raw: str) -> None:
    answer = helm.template("--set-json", f"{KNOB}={raw}")
    assert answer.returncode != 0
    assert "orgSlotRunBudgetSeconds" in answer.stderr


@pytest.mark.parametrize(
    "flags",
    [
        ("--set", f"{KNOB}=null"),
        ("--set", f"{KNOB}="),
        ("--set-string", f"{KNOB}="),
        ("--set-json", f'{KNOB}=""'),
        ("--set", "knobs=null"),
    ],
)
def test_null_and_the_empty_string_are_absence(helm: Helm, flags: tuple[str, ...]) -> None:
    assert helm.template(*flags).stdout == helm.template().stdout


def test_the_word_null_as_a_string_is_a_botched_edit_like_any_other(helm: Helm) -> None:
    assert f'{KNOB}="null" is no whole number' in helm.refusal("--set-string", f"{KNOB}=null")


def test_zero_stays_zero(helm: Helm) -> None:
    flags = ("--set", "knobs.orgSlotGlobalCap=0,knobs.orgSlotContinuousRefill=0,replicas=0")
    environment = helm.environment(*flags)
    assert environment["FAIRLEASE_ORG_SLOT_GLOBAL_CAP"] == "0"
    assert environment["FAIRLEASE_ORG_SLOT_CONTINUOUS_REFILL"] == "0"
    assert "  replicas: 0\n" in helm.template(*flags).stdout


def test_a_leading_zero_is_not_octal(helm: Helm) -> None:
    assert helm.environment("--set-string", f"{KNOB}=0200")[BUDGET] == "200"


def test_millions_are_written_in_digits(helm: Helm) -> None:
    values = {"worker": {"timeoutMs": 12_000_000}, "knobs": {"orgSlotRunBudgetSeconds": 11_850}}
    environment = helm.environment(values=values)
    assert environment["FAIRLEASE_ISOLATE_LIFETIME_MS"] == "12000000"
    assert environment[BUDGET] == "11850"


def test_everything_wrong_is_said_at_once(helm: Helm) -> None:
    flags = "knobs.drainConcurrency=0,knobs.maxCrashes=many,worker.timeoutMs=1"
    said = helm.refusal("--set", flags)
    assert "knobs.drainConcurrency=0 is below 1" in said
    assert 'knobs.maxCrashes="many" is no whole number' in said
    assert "worker.timeoutMs=1 is below 150000" in said


def test_a_knob_that_does_not_exist_is_refused(helm: Helm) -> None:
    said = helm.refusal("--set", "knobs.drainConcurency=4")
    assert "knobs.drainConcurency is no knob" in said
    assert "drainConcurrency" in said


def test_a_value_that_does_not_exist_is_refused(helm: Helm) -> None:
    answer = helm.template("--set", "worker.timeout=1")
    assert answer.returncode != 0
    assert "timeout" in answer.stderr
