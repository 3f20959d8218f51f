"""The bundled tasks in a real host: queues are measured and kept in order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from fairlease.resources import functions_folder
from stack.hosts import eventually, running_host

if TYPE_CHECKING:
    from pathlib import Path

TASKS = ("queue_maintenance", "queue_monitor")


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    for name in TASKS:
        (tmp_path / name).symlink_to(functions_folder() / name)
    return tmp_path


def lines_of(capfd: pytest.CaptureFixture[str], seen: list[dict[str, Any]]) -> list[dict[str, Any]]:
    written = capfd.readouterr().err.splitlines()
    seen.extend(json.loads(line) for line in written if line.startswith("{"))
    return seen


def test_a_poke_measures_the_queues_and_one_removes_what_is_over(
    database: str, functions: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[dict[str, Any]] = []

    def said(event: str) -> list[dict[str, Any]]:
        return [line for line in lines_of(capfd, seen) if line["event"] == event]

    with psycopg.connect(database, autocommit=True) as session:
        session.execute("select fairlease.attach_queue('jobs', retention => '1 minute')")
        session.execute("select pgmq.send('jobs', '{}'), pgmq.send('jobs', '{}')")
        session.execute("select pgmq.archive('jobs', 1)")
        session.execute("update pgmq.a_jobs set archived_at = now() - interval '1 hour'")
        session.execute("update pgmq.q_jobs set vt = now() - interval '1 hour'")
    variables = {"FAIRLEASE_DATABASE_URL": database, "FAIRLEASE_LOG_FORMAT": "json"}
    with running_host(functions, **variables) as host:
        for name in TASKS:
            assert host.poke(name).json()["status"] == "accepted"
        assert eventually(lambda: bool(said("queue_alarm") and said("queues_maintained")))
    assert [(m["queue"], m["ready"]) for m in said("queue_measured")] == [("jobs", 1)]
    (alarm,) = said("queue_alarm")
    assert (alarm["queue"], alarm["measure"]) == ("jobs", "oldest_age_seconds")
    assert said("queues_maintained")[0]["removed"] == {"jobs: archive": 1}


def test_without_a_database_the_host_starts_and_the_tasks_say_that_they_skip(
    functions: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[dict[str, Any]] = []
    with running_host(functions, FAIRLEASE_LOG_FORMAT="json") as host:
        for name in TASKS:
            assert host.poke(name).json()["status"] == "accepted"
        assert eventually(
            lambda: (
                {
                    line["function"]
                    for line in lines_of(capfd, seen)
                    if line["event"].startswith("skipped: ")
                }
                == set(TASKS)
            )
        )
