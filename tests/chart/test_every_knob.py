"""The rules of every knob, by shape, from where the knobs are defined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fairlease.settings import knob_table
from fairlease.settings.table import as_json

if TYPE_CHECKING:
    from chart.helm import Helm

KNOBS = {entry["camel"]: entry for entry in as_json()}
ENVS = {entry["env"] for entry in as_json()}
LIFETIME = "isolateLifetimeMs"
LONGEST_BUDGET = 250
#: With each of these one knob has room for its maximum beside the fallbacks of the others.
ROOM = {
    "drainConcurrency": {"orgInFlightCeiling": 256},
    "orgSlotMaxPerOrg": {"orgInFlightCeiling": 256},
    "orgInFlightCeiling": {"drainConcurrency": 1},
    "visibilityTimeoutSeconds": {"orgSlotLeaseTtlSeconds": 45},
    "orgSlotLeaseTtlSeconds": {"visibilityTimeoutSeconds": 200},
    "maxStallSeconds": {LIFETIME: 115_200_000},
}


def maximum(camel: str) -> int:
    if KNOBS[camel]["derived"]:
        return LONGEST_BUDGET
    return KNOBS[camel]["maximum"] or KNOBS[camel]["minimum"] * 100


def in_range(camel: str, value: object) -> dict[str, object]:
    return {"knobs": {**ROOM.get(camel, {}), camel: value}}


def cases(edge: str) -> list[tuple[str, int]]:
    if edge == "minimum":
        return [(camel, entry["minimum"]) for camel, entry in KNOBS.items()]
    return [(camel, maximum(camel)) for camel in KNOBS]


def test_no_knob_is_rendered_by_default(helm: Helm) -> None:
    rendered = helm.template().stdout
    found = {env for env in ENVS if env in rendered}
    # The life of an isolate has a value of its own, which is always set.
    assert found == {KNOBS[LIFETIME]["env"]}


@pytest.mark.parametrize("edge", ["minimum", "maximum"])
def test_both_ends_of_every_range_render_through_and_nothing_else(helm: Helm, edge: str) -> None:
    asked = [in_range(camel, value) for camel, value in cases(edge)]
    # A lease of its fallback's length does not fit the shortest visibility timeout.
    asked = [
        {"knobs": {"orgSlotLeaseTtlSeconds": 45, **one["knobs"]}}
        if edge == "minimum" and "visibilityTimeoutSeconds" in one["knobs"]
        else one
        for one in asked
    ]
    for one, verdict in zip(asked, helm.verdicts(asked), strict=True):
        assert verdict.refusals == []
        expected = {KNOBS[camel]["env"]: str(value) for camel, value in one["knobs"].items()}
        rendered = {env: raw for env, raw in verdict.environment.items() if env in ENVS}
        assert rendered == {KNOBS[LIFETIME]["env"]: "400000", **expected}


@pytest.mark.parametrize("edge", ["below", "above"])
def test_just_outside_of_every_range_is_refused_with_the_limit_and_a_remedy(
    helm: Helm, edge: str
) -> None:
    bounded = [c for c, e in KNOBS.items() if edge == "below" or e["maximum"] or e["derived"]]
    outside = {c: KNOBS[c]["minimum"] - 1 if edge == "below" else maximum(c) + 1 for c in bounded}
    said = helm.refusal(values={"knobs": outside}).splitlines()
    for camel, value in outside.items():
        limit = value + 1 if edge == "below" else value - 1
        (line,) = (one for one in said if one.startswith(f"- knobs.{camel}="))
        assert f"knobs.{camel}={value} is {edge} {limit}" in line
        assert "give " in line
        assert "or remove " in line


@pytest.mark.parametrize("raw", ["", None])
def test_null_and_empty_are_absence_for_every_knob(helm: Helm, raw: str | None) -> None:
    answer = helm.template(values={"knobs": dict.fromkeys(KNOBS, raw)})
    assert answer.stdout == helm.template().stdout


JUNK = [180.5, "off", "1.0", "1e3", "0x10", "1_000", "٤", " ", "4 4", "--4", "nan", True, False]


@pytest.mark.parametrize("raw", JUNK)
def test_what_is_no_whole_number_is_refused_for_every_knob(helm: Helm, raw: object) -> None:
    (verdict,) = helm.verdicts([{"knobs": dict.fromkeys(KNOBS, raw)}])
    for camel in KNOBS:
        assert any(
            one.startswith(f"- knobs.{camel}=") and "is no whole number" in one
            for one in verdict.refusals
        )


def test_every_knob_is_taken_from_the_command_line(helm: Helm) -> None:
    flags = ",".join(
        f"knobs.{camel}={entry['fallback']}"
        for camel, entry in KNOBS.items()
        if camel not in {LIFETIME, "maxStallSeconds"}
    )
    environment = helm.environment("--set", f"{flags},knobs.maxStallSeconds=300")
    for entry in KNOBS.values():
        fallback = 300 if entry["camel"] == "maxStallSeconds" else entry["fallback"]
        assert environment[entry["env"]] == str(fallback)


def test_the_facts_of_the_chart_cover_every_knob() -> None:
    assert [entry["name"] for entry in KNOBS.values()] == list(knob_table())


def test_both_names_of_the_lifetime_are_one_and_must_agree(helm: Helm) -> None:
    env = KNOBS[LIFETIME]["env"]
    assert helm.environment("--set", f"knobs.{LIFETIME}=480000")[env] == "480000"
    said = helm.refusal("--set", f"knobs.{LIFETIME}=480000,worker.timeoutMs=500000")
    assert "knobs.isolateLifetimeMs=480000 and worker.timeoutMs=500000" in said


def test_a_knob_among_the_extra_variables_is_refused(helm: Helm) -> None:
    names = [*ENVS, "EDGE_WORKER_TIMEOUT_MS", "FAIRLEASE_GRACE_SECONDS"]
    extra = [{"name": name, "value": "1"} for name in names]
    (verdict,) = helm.verdicts([{"extraEnv": extra}])
    assert len(verdict.refusals) == len(names)
    assert all("set " in one and " instead" in one for one in verdict.refusals)
