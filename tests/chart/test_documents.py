"""The helm commands of the documentation are commands that render."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from chart.helm import Helm

DOCUMENT = Path(__file__).parents[2] / "docs" / "deploy-kubernetes.md"
TEXT = DOCUMENT.read_text()


def commands() -> list[list[str]]:
    """The flags that say something about values."""
    blocks = "".join(re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)).replace("\\\n", " ")
    found = [shlex.split(line[2:]) for line in blocks.splitlines() if line.startswith("$ helm ")]
    return [[*one[one.index("charts/fairlease") + 1 :]] for one in found]


@pytest.mark.parametrize("flags", commands(), ids=lambda flags: flags[-1][:40])
def test_a_documented_command_renders(helm: Helm, flags: list[str]) -> None:
    known = [flag for flag in flags if flag != "--reuse-values"]
    answer = helm.template(*known)
    assert answer.returncode == 0, answer.stderr


def test_the_documented_refusal_is_what_is_said(helm: Helm) -> None:
    said = helm.refusal("--set", "knobs.orgSlotRunBudgetSeconds=330")
    documented = re.search(r"```\n- (knobs\..*?)```", TEXT, re.DOTALL)
    assert documented is not None
    assert " ".join(documented[1].split()) in said


def test_every_alert_is_documented(helm: Helm) -> None:
    rendered = helm.template("--set", "prometheusRule.enabled=true").stdout
    assert set(re.findall(r"alert: (\w+)", rendered)) == set(re.findall(r"`(Fairlease\w+)`", TEXT))
