"""The size report: prints the largest, and fails where a limit is passed without a reason.

Limits: a file of Python 400 lines (tests 300), a function 60, a SQL function 120.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

FILE_LIMIT, TEST_FILE_LIMIT, FUNCTION_LIMIT, SQL_FUNCTION_LIMIT = 400, 300, 60, 120

#: What may be larger, and why.
REASONS = {
    "tests/sql/test_settle.py": "one outcome after the other on one queue, read from top to bottom",
}


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        check=True,
        capture_output=True,
        text=True,
    )
    return [Path(name) for name in listed.stdout.splitlines() if Path(name).is_file()]


def python_functions(path: Path) -> list[tuple[str, int]]:
    tree = ast.parse(path.read_text())
    return [
        (f"{path}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def sql_functions(path: Path) -> list[tuple[str, int]]:
    pattern = r"(?is)create (?:or replace )?function\s+([\w.]+).*?(\$\w*\$)(.*?)\2"
    return [
        (f"{path}:{found[1]}", found[3].count("\n") + 1)
        for found in re.finditer(pattern, path.read_text())
    ]


def main() -> int:
    files = {path: path.read_text().count("\n") for path in tracked("*.py", "*.sql", "*.ts")}
    functions = [f for path in files if path.suffix == ".py" for f in python_functions(path)]
    in_sql = [f for path in files if path.suffix == ".sql" for f in sql_functions(path)]
    too_large = [
        (str(path), lines)
        for path, lines in files.items()
        if lines > (TEST_FILE_LIMIT if path.parts[0] == "tests" else FILE_LIMIT)
    ]
    too_large += [f for f in functions if f[1] > FUNCTION_LIMIT]
    too_large += [f for f in in_sql if f[1] > SQL_FUNCTION_LIMIT]
    library = [lines for path, lines in files.items() if path.parts[0] == "functions" and lines]
    ours = sorted(lines for name, lines in functions if name.startswith("functions/"))
    print(
        f"sizes: library files median {median(library):.0f}, largest {max(library)}; functions "
        f"median {median(ours):.0f}, 90th percentile {ours[len(ours) * 9 // 10]}, "
        f"largest {ours[-1]}; SQL functions largest {max([n for _, n in in_sql], default=0)}"
    )
    refused = [(name, lines) for name, lines in too_large if name not in REASONS]
    for name, lines in refused:
        print(f"too large: {name}: {lines} lines; split it, or give the reason in {__file__}")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
