"""What an operator reads after an install: facts, and warnings for what works but not well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chart.helm import CHART

if TYPE_CHECKING:
    from chart.helm import Helm

WARNINGS = [
    (
        "worker.timeoutMs=200000",
        "200 - 120 = 80 s are left for one worst message and the exit, which need 150. Raise",
    ),
    (
        "knobs.orgSlotRunBudgetSeconds=180,worker.gracefulExitTimeoutSeconds=150",
        "nothing is claimed for 70 s of each isolate's life",
    ),
    (
        "worker.gracefulExitTimeoutSeconds=200",
        "isolates are told to stop after 200 s, before their budget of 250 s is used",
    ),
    ("knobs.handlerTimeoutSeconds=280", "handlers may take 280 s, and 120 s are reserved"),
    ("knobs.orgSlotGlobalCap=0", "nothing is claimed"),
    ("cron.functions=null", "nobody pokes"),
]


def notes(helm: Helm, *flags: str) -> str:
    answer = helm.run("install", "fairlease", CHART, "--dry-run=client", *flags)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.partition("NOTES:")[2]


def test_the_notes_tell_how_an_isolate_lives_and_warn_of_nothing(helm: Helm) -> None:
    said = notes(helm)
    assert "lives 400 s, claims for 250 s, and has 150 s to end" in said
    assert "WARNING" not in said
    assert "<no value>" not in said


@pytest.mark.parametrize(("flags", "warning"), WARNINGS)
def test_what_works_but_not_well_is_said(helm: Helm, flags: str, warning: str) -> None:
    (line,) = (one for one in notes(helm, "--set", flags).splitlines() if "WARNING" in one)
    assert warning in line
