"""The random sequences see faults, and a fault that cannot be planted proves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from differential.harness import refusals
from drain.rules import planted

from .__main__ import main
from .faults import IN_PYTHON, IN_SQL

if TYPE_CHECKING:
    from fairlease.local.postgres import LocalPostgres


def test_every_fault_can_be_planted(postgres: LocalPostgres, template: str) -> None:
    assert refusals(postgres, IN_SQL, template) == []
    for fault in IN_PYTHON:
        assert planted(fault)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_fault_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "tests")
    assert main() == 0
