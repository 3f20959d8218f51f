from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg

from fairlease.admin.migrate import migrate

FUNCTIONS = Path(__file__).parents[2] / "functions"
MIGRATE = """
import pathlib, sys
from fairlease.admin.migrate import migrate
migrate(sys.argv[1], folder=pathlib.Path(sys.argv[2]))
"""


def wait_until_waiting_for_a_lock(observer: psycopg.Connection, statement: str) -> None:
    observer.execute(
        "do $$ begin for v_try in 1..1000 loop "
        "perform pg_stat_clear_snapshot(); "
        "if exists (select from pg_stat_activity where wait_event_type = 'Lock' "
        f"and datname = current_database() and query like '{statement}%') then return; end if; "
        "perform pg_sleep(0.01); end loop; raise 'nobody waits'; end $$".encode()
    )


def test_runs_at_the_same_time_apply_each_file_once(empty: str, folder: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda _: migrate(empty, folder=folder), range(4)))
    applied = sorted(label for report in reports for label in report.applied)
    assert applied == ["20260101000000_first", "20260102000000_second", "20260103000000_third"]
    assert all(report.pending == [] for report in reports)


def test_killed_run_leaves_nothing_half_done_and_the_next_finishes(
    empty: str, folder: Path
) -> None:
    migrate(empty, folder=folder, to="20260101000000")
    with psycopg.connect(empty) as gate, psycopg.connect(empty, autocommit=True) as observer:
        gate.execute("lock table public.one in share mode")
        environment = {**os.environ, "PYTHONPATH": str(FUNCTIONS)}
        with subprocess.Popen(
            [sys.executable, "-c", MIGRATE, empty, str(folder)], env=environment
        ) as run:
            wait_until_waiting_for_a_lock(observer, "alter table")
            run.kill()
        gate.commit()
        report = migrate(empty, folder=folder)
        found = observer.execute("select id, note from public.one order by id").fetchall()
    assert report.applied == ["20260102000000_second", "20260103000000_third"]
    assert found == [(1, "100%"), (3, "100%")]
