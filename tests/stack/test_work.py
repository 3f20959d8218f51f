"""`fairlease work` as a process on a real database: woken, cut off, stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from stack.hosts import eventually, host_environ
from stack.workers import (
    QUEUE,
    WorkProcess,
    is_listening,
    prepare,
    send,
    work_command,
    working,
    write_napper,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psycopg

# Far below the 60 s of a poll, far above what a wake-up takes on a busy machine.
SOON_SECONDS = 5.0


@pytest.fixture
def session(database: str) -> Iterator[psycopg.Connection]:
    with prepare(database) as session:
        yield session


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    return write_napper(tmp_path / "functions")


@pytest.fixture
def worker(session: psycopg.Connection, functions: Path, database: str) -> Iterator[WorkProcess]:
    with working(functions, database) as process:
        assert eventually(lambda: is_listening(session))
        yield process


def begins(worker: WorkProcess, msg_id: int) -> float:
    """Seconds from now until its handler says so."""
    since = time.monotonic()
    assert worker.line().startswith(f"begun {msg_id} ")
    assert worker.line().startswith(f"ended {msg_id} ")
    return time.monotonic() - since


def archived(session: psycopg.Connection) -> set[int]:
    return {row[0] for row in session.execute(f"select msg_id from pgmq.a_{QUEUE}").fetchall()}


def test_what_waited_before_the_start_is_drained_and_nothing_needs_a_secret(
    session: psycopg.Connection, functions: Path, database: str
) -> None:
    first = send(session)
    with working(functions, database) as worker:
        assert worker.url == "napper"
        assert begins(worker, first) < SOON_SECONDS
        assert worker.stopped() == 0
        assert worker.line() == "DONE 1 messages in 1 runs"
    assert archived(session) == {first}


def test_a_notification_wakes_an_idle_worker_long_before_its_poll(
    session: psycopg.Connection, worker: WorkProcess
) -> None:
    taken = []
    for _ in range(5):
        time.sleep(0.4)  # longer than the throttle: each is told of
        taken.append(begins(worker, send(session)))
    assert max(taken) < SOON_SECONDS
    assert sorted(taken)[2] < 0.5
    assert eventually(lambda: len(archived(session)) == 5)


def test_a_message_within_the_throttle_of_another_does_not_wait_for_the_poll(
    session: psycopg.Connection, worker: WorkProcess
) -> None:
    session.execute("select pgmq.update_notify_insert(%s, 250)", [QUEUE])
    begins(worker, send(session))
    # pgmq tells of the first alone, and the worker has looked since.
    assert begins(worker, send(session)) < SOON_SECONDS


def test_a_lost_connection_is_made_again_and_what_came_meanwhile_is_found(
    session: psycopg.Connection, worker: WorkProcess
) -> None:
    session.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name = 'fairlease listen' and datname = current_database()"
    )
    assert begins(worker, send(session)) < SOON_SECONDS
    assert eventually(lambda: is_listening(session))
    time.sleep(0.4)
    assert begins(worker, send(session)) < SOON_SECONDS
    said = worker.said()
    assert said.count("no connection to listen on") == 1
    assert "listening again" in said


@pytest.mark.slow
def test_without_notifications_the_queue_is_polled_and_the_log_names_the_remedy(
    session: psycopg.Connection, functions: Path, database: str
) -> None:
    session.execute("select pgmq.disable_notify_insert(%s)", [QUEUE])
    with working(functions, database, FAIRLEASE_POLL_IDLE_SECONDS="1") as worker:
        assert eventually(lambda: "fairlease queue notify naps" in worker.said())
        assert begins(worker, send(session)) < SOON_SECONDS


def test_a_throttle_that_a_crash_of_the_database_lost_is_said(
    session: psycopg.Connection, functions: Path, database: str
) -> None:
    # pgmq keeps it in an unlogged table, and tells of nothing without it.
    session.execute("truncate pgmq.notify_insert_throttle")
    with working(functions, database) as worker:
        assert eventually(lambda: "fairlease queue notify naps" in worker.said())


def test_a_worker_without_a_database_of_its_own_to_listen_on_says_that_it_polls(
    functions: Path,
) -> None:
    through_api = {"SUPABASE_URL": "http://127.0.0.1:1", "SUPABASE_SECRET_KEY": "sb_secret_x"}
    with working(functions, "", **through_api) as worker:
        assert eventually(lambda: "nothing wakes this worker, it polls" in worker.said())
        assert worker.stopped() == 0


def test_json_is_one_object_at_the_end(
    session: psycopg.Connection, functions: Path, database: str
) -> None:
    with working(functions, database, "--json") as worker:
        send(session)
        assert worker.line().startswith("begun ")
        assert worker.line().startswith("ended ")
        assert worker.stopped() == 0
        done = json.loads(worker.line())
    assert (done["messages"], done["still_running"]) == (1, [])


def test_what_is_in_flight_at_a_stop_ends_within_the_grace(
    session: psycopg.Connection, functions: Path, database: str
) -> None:
    sent = send(session, ms=800)
    with working(functions, database, FAIRLEASE_GRACE_SECONDS="20") as worker:
        assert worker.line().startswith(f"begun {sent} ")
        assert worker.stopped() == 0
        assert worker.line().startswith(f"ended {sent} ")
    assert archived(session) == {sent}


def test_a_second_ctrl_c_ends_the_handlers_and_gives_their_messages_back_uncounted(
    session: psycopg.Connection, functions: Path, database: str
) -> None:
    sent = send(session, ms=60_000)
    with working(functions, database) as worker:
        assert worker.line().startswith(f"begun {sent} ")
        worker.process.send_signal(signal.SIGINT)
        assert eventually(lambda: "stopping; what is in flight has" in worker.said())
        worker.process.send_signal(signal.SIGINT)
        assert worker.wait() == 0
    waiting = session.execute(
        f"select msg_id, vt <= clock_timestamp() from pgmq.q_{QUEUE}"
    ).fetchall()
    assert waiting == [(sent, True)]
    held = session.execute("select count(*) from fairlease.seats where holder is not null")
    assert held.fetchone() == (0,)


@pytest.mark.slow
def test_a_handler_that_does_not_end_is_named_and_the_process_says_so_with_70(
    session: psycopg.Connection, functions: Path, database: str
) -> None:
    sent = send(session, ms=60_000, stubborn=True)
    with working(functions, database, FAIRLEASE_GRACE_SECONDS="11") as worker:
        assert worker.line().startswith(f"begun {sent} ")
        assert worker.stopped() == 70
        assert f"handlers did not end: messages [{sent}]" in worker.said()


@pytest.mark.slow
def test_a_handler_that_blocks_the_loop_is_ended_by_the_kernel_soon_after_the_grace(
    session: psycopg.Connection, functions: Path, database: str
) -> None:
    sent = send(session, method="block", ms=60_000)
    with working(functions, database, FAIRLEASE_GRACE_SECONDS="11") as worker:
        assert worker.line().startswith(f"begun {sent} ")
        since = time.monotonic()
        worker.process.send_signal(signal.SIGTERM)
        assert worker.wait() == -signal.SIGALRM
        assert time.monotonic() - since < 11 + 5


def test_a_drain_that_is_not_there_is_refused_by_name(functions: Path) -> None:
    refused = subprocess.run(
        [*work_command(functions), "nobody"],
        env=host_environ(FAIRLEASE_DATABASE_URL="postgresql://127.0.0.1:1/x"),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert refused.returncode == 2
    assert "'nobody' is not there; the drains are: napper" in refused.stderr
