"""A host that is told to stop, on a real database: what it does not finish, it gives back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from stack.hosts import HostProcess, alive, eventually, running_host
from stack.workers import QUEUE, prepare, send, write_napper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psycopg

# The shortest: handlers are cancelled a second after the signal.
GRACE_SECONDS = 11
HOUR_MS = 3_600_000


@pytest.fixture
def session(database: str) -> Iterator[psycopg.Connection]:
    with prepare(database) as session:
        yield session


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    return write_napper(tmp_path / "functions")


@pytest.fixture
def host(
    session: psycopg.Connection, database: str, functions: Path, tmp_path: Path
) -> Iterator[HostProcess]:
    with running_host(
        functions,
        log=tmp_path / "log",
        FAIRLEASE_DATABASE_URL=database,
        FAIRLEASE_GRACE_SECONDS=str(GRACE_SECONDS),
    ) as host:
        yield host


def waiting(session: psycopg.Connection) -> set[tuple[int, bool]]:
    """Messages that are not done: (id, may be claimed)."""
    rows = session.execute(f"select msg_id, vt <= clock_timestamp() from pgmq.q_{QUEUE}")
    return set(rows.fetchall())


def slots_held(session: psycopg.Connection) -> int:
    row = session.execute("select count(holder) from fairlease.seats").fetchone()
    assert row is not None
    return int(row[0])


def test_a_stop_gives_back_what_does_not_finish_and_does_not_count_the_attempt(
    session: psycopg.Connection, database: str, functions: Path, host: HostProcess
) -> None:
    done, *kept = [send(session, ms=ms) for ms in (700, HOUR_MS, HOUR_MS)]
    host.poke("napper")
    for _ in range(3):
        assert host.line().endswith(" 1")
    host.process.terminate()
    assert host.wait() == 0
    assert host.line().startswith(f"ended {done} ")
    assert waiting(session) == {(msg_id, True) for msg_id in kept}
    assert slots_held(session) == 0
    with running_host(functions, FAIRLEASE_DATABASE_URL=database) as successor:
        successor.poke("napper")
        for _ in kept:
            what, msg_id, _, _, attempt = successor.line().split()
            assert (what, int(msg_id) in kept, attempt) == ("begun", True, "1")


@pytest.mark.slow
@pytest.mark.parametrize(("method", "stubborn"), [("nap", True), ("block", False)])
def test_a_handler_that_does_not_end_keeps_its_message_and_not_the_host(
    session: psycopg.Connection, host: HostProcess, method: str, stubborn: bool
) -> None:
    sent = send(session, method=method, ms=HOUR_MS, stubborn=stubborn)
    host.poke("napper")
    isolate = int(host.line().split()[3])
    host.process.terminate()
    told = time.monotonic()
    assert host.wait() == 0
    assert time.monotonic() - told < GRACE_SECONDS + 3
    assert eventually(lambda: not alive(isolate))
    # Given back while it ran, it would have been done twice: it waits for its timeout.
    assert waiting(session) == {(sent, False)}
    assert slots_held(session) == 1
