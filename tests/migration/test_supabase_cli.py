from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest

from fairlease.admin.migrate import migrate
from migration.supabase_cli import MISSING, supabase_cli

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason=MISSING),
]


@pytest.fixture(scope="module")
def supabase() -> Path:
    return supabase_cli()


def push(program: Path, project: Path, url: str) -> str:
    command = [program, "db", "push", "--db-url", f"{url}?sslmode=disable", "--yes"]
    done = subprocess.run(
        command,
        cwd=project,
        env={**os.environ, "SUPABASE_TELEMETRY_DISABLED": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr + done.stdout


def versions(url: str) -> set[str]:
    with psycopg.connect(url) as session:
        query = "select version from supabase_migrations.schema_migrations"
        return {row[0] for row in session.execute(query)}


def test_db_push_applies_every_file_and_migrate_then_has_nothing_to_do(
    supabase: Path, pgmq_database: str
) -> None:
    push(supabase, ROOT, pgmq_database)
    files = {file.name.split("_")[0] for file in (ROOT / "migrations").glob("*.sql")}
    assert versions(pgmq_database) == files
    report = migrate(pgmq_database)
    assert (report.applied, report.pending) == ([], [])
    with psycopg.connect(pgmq_database) as session:
        session.execute("select fairlease.attach_queue('pushed')")


def test_a_second_push_changes_nothing(supabase: Path, pgmq_database: str) -> None:
    push(supabase, ROOT, pgmq_database)
    assert "up to date" in push(supabase, ROOT, pgmq_database)
