from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from fairlease.local.postgres import SUPERUSER, LocalPostgres
from stack.owners import (
    descendants,
    next_line,
    processes_mentioning,
    running_owner,
    wait_until_gone,
)

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="needs the kernel's parent-death signal"
)


def killed(owner: subprocess.Popen[str]) -> list[int]:
    """Kill it and wait for the end of everything it started; what that was."""
    family = descendants(owner.pid)
    owner.kill()
    owner.wait()
    wait_until_gone(family)
    return family


def test_killed_owner_leaves_no_process_and_the_next_start_finds_its_data(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_owner(data, tmp_path) as owner:
        with psycopg.connect(next_line(owner)) as session:
            session.execute("create table kept as select 42 as answer")
        assert len(killed(owner)) > 3
    with LocalPostgres(data) as server, psycopg.connect(server.url()) as session:
        assert session.execute("select answer from kept").fetchall() == [(42,)]


@pytest.mark.slow
def test_next_start_removes_what_a_killed_owner_of_a_temporary_folder_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_owner(None, tmp_path) as owner:
        next_line(owner)
        killed(owner)
    assert list(tmp_path.iterdir()) != []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with LocalPostgres():
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("delay_seconds", [0.05, 0.4, 1.0])
def test_interrupt_at_any_moment_leaves_nothing(tmp_path: Path, delay_seconds: float) -> None:
    with running_owner(None, tmp_path) as owner:
        threading.Timer(delay_seconds, owner.send_signal, [signal.SIGINT]).start()
        owner.wait()
        wait_until_gone(processes_mentioning(f"TMPDIR={tmp_path}"))
        assert list(tmp_path.iterdir()) == []


def test_server_outlives_the_thread_that_started_it() -> None:
    server = LocalPostgres()
    starter = threading.Thread(target=server.start)
    starter.start()
    starter.join()
    try:
        with psycopg.connect(server.url(user=SUPERUSER)) as session:
            assert session.execute("select 1").fetchone() == (1,)
    finally:
        server.stop()
