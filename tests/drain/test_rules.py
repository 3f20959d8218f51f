"""The map of the rules is whole and can be planted; `make rules` plants it."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest

from .faults.every import FAULTS
from .rules import PAGE, ROOT, RULES, as_markdown, planted

if TYPE_CHECKING:
    from .faults.fault import Fault


def test_every_rule_has_a_test_and_a_fault_that_it_must_catch() -> None:
    assert {fault.rule for fault in FAULTS} >= set(RULES)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}-{fault.what}")
def test_a_fault_can_be_planted_and_names_a_test_that_exists(fault: Fault) -> None:
    compile(planted(fault), fault.file, "exec")

    file, name = fault.test.split("::")
    assert name in names_in(file)


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


def test_the_page_is_the_map() -> None:
    assert PAGE.read_text(encoding="utf-8") == as_markdown()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_planted_fault_turns_its_test_red() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.drain.rules"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-4000:]
