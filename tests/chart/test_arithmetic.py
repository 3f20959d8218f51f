"""The chart's arithmetic against the worker's: two computations of one rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fairlease.host.lifetime import lifetime_of
from fairlease.settings import IssueKind, load_settings, longest_run_budget_seconds
from fairlease.settings.table import as_json

if TYPE_CHECKING:
    from chart.helm import Helm, Values, Verdict

KNOBS = {entry["camel"]: entry for entry in as_json()}
#: What the worker reports and works with: the chart says it in its notes.
TOLERATED = {IssueKind.RESERVE_NOT_COVERED, IssueKind.GRACE_GAP}
#: What one run of helm is asked about.
BATCH = 80

lifetimes_ms = (
    st.integers(150_000, 600_000)
    | st.sampled_from([150_000, 269_999, 270_000, 270_999, 271_000, 400_000, 480_000])
    | st.integers(600_000, 10**11)
)


@st.composite
def near_its_range(draw: st.DrawFn, camel: str) -> int | str:
    entry = KNOBS[camel]
    top = entry["maximum"] or (LONGEST if entry["derived"] else 600_000)
    near = st.sampled_from([entry["minimum"], entry["fallback"], top]).flatmap(
        lambda edge: st.integers(edge - 2, edge + 2)
    )
    value = draw(near | st.integers(entry["minimum"], top))
    return draw(st.sampled_from([value, str(value), f"0{value}" if value >= 0 else str(value)]))


LONGEST = 450
some_knobs = st.lists(st.sampled_from(list(KNOBS)), unique=True, max_size=5).flatmap(
    lambda names: st.fixed_dictionaries({name: near_its_range(name) for name in names})
)


def environment_of(knobs: dict[str, Any]) -> dict[str, str]:
    return {KNOBS[camel]["env"]: str(raw) for camel, raw in knobs.items()}


def agree(knobs: dict[str, Any], verdict: Verdict) -> None:
    written = environment_of(knobs)
    seen = load_settings(written)
    wrong = [issue.message for issue in seen.issues if issue.kind not in TOLERATED]
    assert bool(verdict.refusals) == bool(wrong), (knobs, verdict.refusals, wrong)
    if not wrong:
        assert load_settings(verdict.environment).knobs == seen.knobs
        lifetime, _ = lifetime_of(seen.knobs, verdict.environment)
        assert verdict.budget == lifetime.budget_seconds
        assert verdict.grace == lifetime.grace_seconds
        assert verdict.termination == lifetime.grace_seconds + 10


def check_knobs(helm: Helm, cases: list[dict[str, Any]]) -> None:
    verdicts = helm.verdicts([{"knobs": knobs} for knobs in cases])
    for knobs, verdict in zip(cases, verdicts, strict=True):
        agree(knobs, verdict)


quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
# Each example is a run of helm on many cases; the one that fails is named, so nothing is shrunk.
few = settings(
    max_examples=2, deadline=None, suppress_health_check=quiet, phases=[Phase.reuse, Phase.generate]
)
many = settings(few, max_examples=30)
sets_of_knobs = st.lists(some_knobs, min_size=BATCH // 2, max_size=BATCH)


@few
@given(cases=sets_of_knobs)
def test_the_chart_refuses_exactly_what_the_worker_would_correct(
    helm: Helm, cases: list[dict[str, Any]]
) -> None:
    check_knobs(helm, cases)


@pytest.mark.slow
@many
@given(cases=sets_of_knobs)
def test_the_chart_refuses_exactly_what_the_worker_would_correct_at_length(
    helm: Helm, cases: list[dict[str, Any]]
) -> None:
    check_knobs(helm, cases)


def at_the_limit(lifetime_ms: int, beyond: int) -> Values:
    budget = longest_run_budget_seconds(lifetime_ms) + beyond
    return {
        "worker": {"timeoutMs": lifetime_ms},
        "knobs": {"orgSlotRunBudgetSeconds": budget, "orgSlotLeaseTtlSeconds": 45},
    }


@few
@given(lifetimes=st.lists(lifetimes_ms, min_size=BATCH // 4, max_size=BATCH))
def test_the_longest_budget_is_the_same_for_every_lifetime(
    helm: Helm, lifetimes: list[int]
) -> None:
    fitting = helm.verdicts([at_the_limit(ms, 0) for ms in lifetimes])
    beyond = helm.verdicts([at_the_limit(ms, 1) for ms in lifetimes])
    for lifetime_ms, taken, refused in zip(lifetimes, fitting, beyond, strict=True):
        longest = longest_run_budget_seconds(lifetime_ms)
        assert taken.refusals == []
        assert taken.budget == longest
        (line,) = refused.refusals
        assert f"={longest + 1} is above {longest} = max(120, floor({lifetime_ms} /" in line


def test_the_remedy_that_is_named_is_enough_and_no_more_than_needed(helm: Helm) -> None:
    asked = [at_the_limit(ms, 1) for ms in range(150_000, 700_000, 27_183)]
    remedies = [
        int(v.refusals[0].split("raise worker.timeoutMs to ")[1].split()[0])
        for v in helm.verdicts(asked)
    ]
    cured = [
        {**case, "worker": {"timeoutMs": ms + shift}}
        for shift in (0, -1)
        for case, ms in zip(asked, remedies, strict=True)
    ]
    refused = [bool(v.refusals) for v in helm.verdicts(cured)]
    assert refused == [False] * len(asked) + [True] * len(asked)
