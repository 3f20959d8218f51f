"""docs/security.md promises nothing without a test, and forgets no test of this folder."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", TEXT)))
# What shows that a test of an attack looks at everything.
NO_ATTACKS = {
    "test_the_calls_are_all_functions_that_there_are",
    "test_what_is_a_database_url_is_taken_and_what_is_not_is_not",
}


def names_in(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = {node.name for node in ast.walk(tree) if isinstance(node, functions)}
    return {name for name in names if name.startswith("test_")}


def test_every_test_that_is_named_is_there() -> None:
    assert len(NAMED) > 40
    for path, name in NAMED:
        found = names_in(ROOT / path)
        assert name in found if name else found, (path, name)


def test_every_attack_has_its_test() -> None:
    attacks = TEXT.partition("## Strangers over HTTP")[2].partition("## Out of scope")[0]
    rows = [row for row in attacks.splitlines() if row.startswith("|")]
    rows = [row for row in rows if not row.startswith("|---") and not row.endswith("| test |")]
    assert len(rows) > 35
    assert [row for row in rows if "`tests/" not in row] == []


def test_every_attack_that_is_tested_here_is_told() -> None:
    told = {name for _, name in NAMED} | NO_ATTACKS
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        if file.name != Path(__file__).name:
            assert names_in(file) - told == set(), file.name
