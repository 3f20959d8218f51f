"""Values against each other: refused with both values, the arithmetic and the remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from fairlease.host.manifest import Kind, Manifest

if TYPE_CHECKING:
    from chart.helm import Helm

#: What is asked for, and what the one refusal says.
REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "in-flight product": (
        {"knobs": {"drainConcurrency": 8, "orgSlotMaxPerOrg": 3, "orgInFlightCeiling": 20}},
        [
            "knobs.drainConcurrency=8 times knobs.orgSlotMaxPerOrg=3 is 24",
            "above knobs.orgInFlightCeiling=20",
            "raise the ceiling to 24",
            "drainConcurrency to 6",
            "orgSlotMaxPerOrg to 2",
        ],
    ),
    "in-flight product with fallbacks": (
        {"knobs": {"drainConcurrency": 17}},
        ["17 messages", "knobs.orgInFlightCeiling=16", "raise the ceiling to 17"],
    ),
    "lease and visibility": (
        {"knobs": {"visibilityTimeoutSeconds": 30}},
        [
            "knobs.orgSlotLeaseTtlSeconds=60 is above 45 = 30 * 3 / 2",
            "knobs.visibilityTimeoutSeconds=30",
            "raise the visibility timeout to 40",
        ],
    ),
    "lease and lifetime": (
        {
            "worker": {"timeoutMs": 200_999},
            "knobs": {"orgSlotLeaseTtlSeconds": 200, "visibilityTimeoutSeconds": 1800},
        },
        [
            "knobs.orgSlotLeaseTtlSeconds=200 is not below 200 = floor(200999 / 1000)",
            "lower the lease to 199",
            "raise worker.timeoutMs to 201000",
        ],
    ),
    "stall and lifetime": (
        {"knobs": {"maxStallSeconds": 301}},
        [
            "knobs.maxStallSeconds=301 is above 300 = floor(400000 / 1000) * 3 / 4",
            "raise worker.timeoutMs to 402000",
        ],
    ),
    "grace and reserve": (
        {"worker": {"gracefulExitTimeoutSeconds": 149}},
        ["worker.gracefulExitTimeoutSeconds=149 is below 150", "give 150 to 340", "400 - 250"],
    ),
    "grace of no number": (
        {"worker": {"gracefulExitTimeoutSeconds": "soon"}},
        ['worker.gracefulExitTimeoutSeconds="soon" is no whole number', "give 150 to 340"],
    ),
    "grace and lifetime": (
        {"worker": {"gracefulExitTimeoutSeconds": 341}},
        [
            "worker.gracefulExitTimeoutSeconds=341 is above 340 = floor(400000 / 1000) - 60",
            "worker.timeoutMs=400000",
        ],
    ),
    "grace of a short isolate": (
        {"worker": {"timeoutMs": 200_000, "gracefulExitTimeoutSeconds": 79}},
        ["worker.gracefulExitTimeoutSeconds=79 is below 80 = min(150, 80)", "200 - 120"],
    ),
    "termination and grace": (
        {"terminationGracePeriodSeconds": 159},
        ["terminationGracePeriodSeconds=159 is below 160 = 150 + 10", "400 - 250"],
    ),
    "termination and a grace that is set": (
        {"terminationGracePeriodSeconds": 209, "worker": {"gracefulExitTimeoutSeconds": 200}},
        ["terminationGracePeriodSeconds=209 is below 210 = 200 + 10"],
    ),
    "termination and a grace that follows the budget": (
        {"terminationGracePeriodSeconds": 160, "knobs": {"orgSlotRunBudgetSeconds": 180}},
        ["terminationGracePeriodSeconds=160 is below 230 = 220 + 10", "400 - 180"],
    ),
    "termination of no number": (
        {"terminationGracePeriodSeconds": False},
        ["terminationGracePeriodSeconds=false is no whole number", "give 160 or more"],
    ),
    "memory": (
        {"worker": {"maxRssMb": 465}},
        [
            "resources.limits.memory=1Gi is below 1026Mi = 2 * 465 + 96",
            "worker.maxRssMb=465",
            "lower worker.maxRssMb to 464",
        ],
    ),
    "memory of no number": (
        {"worker": {"maxRssMb": "1Gi"}},
        ['worker.maxRssMb="1Gi" is no whole number'],
    ),
    "two autoscalers": (
        {
            "autoscaling": {
                "hpa": {"enabled": True},
                "keda": {"enabled": True, "prometheusAddress": "http://prometheus:9090"},
            }
        },
        ["autoscaling.hpa.enabled=true and autoscaling.keda.enabled=true", "enable one"],
    ),
    "an autoscaler upside down": (
        {"autoscaling": {"hpa": {"enabled": True, "minReplicas": 9, "maxReplicas": 3}}},
        ["autoscaling.hpa.minReplicas=9 is above autoscaling.hpa.maxReplicas=3"],
    ),
    "nothing to scale on": (
        {"autoscaling": {"keda": {"enabled": True}}},
        ["autoscaling.keda.prometheusAddress"],
    ),
    "two disruption budgets": (
        {"podDisruptionBudget": {"minAvailable": 0, "maxUnavailable": 1}},
        ["podDisruptionBudget.minAvailable=0 and podDisruptionBudget.maxUnavailable=1"],
    ),
    "a schedule that is none": (
        {"cron": {"functions": [{"name": "monitor", "schedule": "every minute"}]}},
        ['cron.functions monitor: schedule="every minute" is no cron expression'],
    ),
    "a function twice": (
        {"cron": {"functions": [{"name": "monitor", "schedule": "* * * * *"}] * 2}},
        ["cron.functions names monitor twice"],
    ),
}

ACCEPTED: list[dict[str, Any]] = [
    {"knobs": {"drainConcurrency": 16}},
    {"knobs": {"drainConcurrency": 8, "orgSlotMaxPerOrg": 3, "orgInFlightCeiling": 24}},
    {"knobs": {"orgSlotLeaseTtlSeconds": 180}},
    {"knobs": {"visibilityTimeoutSeconds": 30, "orgSlotLeaseTtlSeconds": 45}},
    {"knobs": {"maxStallSeconds": 300}},
    {"worker": {"gracefulExitTimeoutSeconds": 150}},
    {"worker": {"gracefulExitTimeoutSeconds": 340}},
    {"worker": {"timeoutMs": 200_000, "gracefulExitTimeoutSeconds": 80}},
    {"terminationGracePeriodSeconds": 160},
    {"terminationGracePeriodSeconds": "160"},
    {"terminationGracePeriodSeconds": 210, "worker": {"gracefulExitTimeoutSeconds": 200}},
    {"worker": {"maxRssMb": 464}},
    {"worker": {"maxRssMb": 4000}, "resources": {"limits": {"memory": "8Gi"}}},
    *(
        {"cron": {"functions": [{"name": "monitor", "schedule": schedule}]}}
        for schedule in ("@hourly", "*/5 1-3 * JAN mon-fri", "0,30 8-18 1 */2 *", "0 0 * * 7")
    ),
]
NO_SCHEDULES = [
    *("", "* * * *", "* * * * * *", "* * * * ?", "a b c d e", "TZ=UTC * * * *", "@reboot"),
    *("@every 5m", "5 seconds", "* * * * *; drop", "CRON_TZ=UTC 0 0 * * *", "٤ * * * *"),
]


def test_each_combination_is_refused_once_with_both_values_and_the_remedies(helm: Helm) -> None:
    verdicts = helm.verdicts([values for values, _ in REFUSED.values()])
    for name, verdict in zip(REFUSED, verdicts, strict=True):
        (line,) = verdict.refusals
        for part in REFUSED[name][1]:
            assert part in line, name


def test_what_just_fits_is_accepted(helm: Helm) -> None:
    verdicts = helm.verdicts(ACCEPTED)
    refused = {str(v): one.refusals for v, one in zip(ACCEPTED, verdicts, strict=True)}
    assert [values for values, refusals in refused.items() if refusals] == []


def test_what_is_no_schedule_to_the_host_is_none_to_the_chart(helm: Helm) -> None:
    asked = [
        {"cron": {"functions": [{"name": "monitor", "schedule": schedule}]}}
        for schedule in NO_SCHEDULES
    ]
    for schedule, verdict in zip(NO_SCHEDULES, helm.verdicts(asked), strict=True):
        with pytest.raises(ValidationError, match="schedule"):
            Manifest(name="monitor", kind=Kind.TASK, schedule=schedule)
        (line,) = verdict.refusals
        assert "is no cron expression" in line, schedule


def test_the_refusals_end_a_real_render(helm: Helm) -> None:
    values, parts = REFUSED["termination and grace"]
    said = helm.refusal(values=values)
    assert all(part in said for part in parts)


@pytest.mark.parametrize("raw", [None, ""])
def test_null_and_empty_are_absence_for_the_times_of_the_worker(
    helm: Helm, raw: str | None
) -> None:
    names = ("timeoutMs", "gracefulExitTimeoutSeconds")
    worker = {"worker": dict.fromkeys(names, raw), "terminationGracePeriodSeconds": raw}
    assert helm.template(values=worker).stdout == helm.template().stdout


def test_the_grace_is_rendered_only_where_it_is_set(helm: Helm) -> None:
    assert "FAIRLEASE_GRACE_SECONDS" not in helm.environment()
    flags = ("--set", "worker.gracefulExitTimeoutSeconds=160")
    assert helm.environment(*flags)["FAIRLEASE_GRACE_SECONDS"] == "160"


@pytest.mark.parametrize(
    ("flags", "seconds"),
    [
        ("replicas=2", 160),
        ("knobs.orgSlotRunBudgetSeconds=180", 230),
        ("worker.gracefulExitTimeoutSeconds=200", 210),
        ("worker.timeoutMs=200000", 90),
        ("terminationGracePeriodSeconds=600", 600),
    ],
)
def test_pods_are_given_the_grace_and_ten_seconds(helm: Helm, flags: str, seconds: int) -> None:
    rendered = helm.template("--set", flags).stdout
    assert f"terminationGracePeriodSeconds: {seconds}\n" in rendered
