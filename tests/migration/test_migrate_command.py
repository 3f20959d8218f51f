from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli import Cli


FUNCTIONS = Path(__file__).parents[2] / "functions"
RUN = "from fairlease.cli.main import run; run()"


def test_migrate_says_what_it_did_and_check_what_is_missing(
    cli: Cli, empty: str, folder: Path
) -> None:
    check = cli("migrate", "--folder", folder, "--check", url=empty)
    assert (check.returncode, check.stdout.splitlines()[0]) == (4, "missing 20260101000000_first")
    done = cli("migrate", "--folder", folder, "--database-url", empty)
    assert done.stdout.splitlines()[-1] == "applied 20260103000000_third"
    again = cli("migrate", "--folder", folder, "--check", url=empty)
    assert (again.returncode, again.stdout, again.stderr) == (0, "up to date\n", "")


def test_json_is_one_object(cli: Cli, empty: str, folder: Path) -> None:
    arguments = ("migrate", "--folder", folder, "--to", "20260101000000", "--json")
    answer = cli(*arguments, url=empty)
    assert json.loads(answer.stdout) == {
        "applied": ["20260101000000_first"],
        "pending": [],
        "unknown": [],
    }


def test_dry_run_says_what_it_would_do(cli: Cli, empty: str, folder: Path) -> None:
    answer = cli("migrate", "--folder", folder, "--dry-run", url=empty)
    assert answer.stdout.splitlines()[0] == "would apply 20260101000000_first"
    assert cli("migrate", "--folder", folder, "--check", url=empty).returncode == 4


def test_failure_is_one_line_on_stderr(
    cli: Cli, empty: str, write: Callable[[dict[str, str]], Path], folder: Path
) -> None:
    write({"20260104000000_bad.sql": "select 1 / 0;"})
    answer = cli("migrate", "--folder", folder, url=empty)
    assert (answer.returncode, answer.stdout) == (3, "")
    assert answer.stderr == (
        "fairlease: migration 20260104000000_bad failed and was rolled back: division by zero\n"
    )


def test_no_database_is_one_line_with_the_remedy(cli: Cli) -> None:
    answer = cli("migrate")
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1
    assert "FAIRLEASE_DATABASE_URL" in answer.stderr


def test_missing_extra_is_named() -> None:
    program = f"import sys; sys.modules['psycopg'] = None; {RUN}"
    answer = subprocess.run(
        [sys.executable, "-c", program, "migrate", "--database-url", "postgresql://x"],
        env={**os.environ, "PYTHONPATH": str(FUNCTIONS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stderr) == (
        2,
        "fairlease: psycopg is not installed: pip install 'fairlease[direct]'\n",
    )


def test_copied_files_are_those_that_migrate_applies(
    cli: Cli, tmp_path: Path, pgmq_database: str
) -> None:
    cli("init", tmp_path, "--no-shims")
    folder = tmp_path / "migrations"
    cli("migrate", url=pgmq_database)
    check = cli("migrate", "--folder", folder, "--check", url=pgmq_database)
    assert (check.returncode, check.stdout) == (0, "up to date\n")
    with psycopg.connect(pgmq_database) as session:
        answer = session.execute("select count(*) from fairlease.schema_migrations").fetchone()
    assert answer == (len(list(folder.glob("*.sql"))),)
