from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import psycopg
import pytest
from psycopg.types.json import Jsonb

from race.sessions import Call
from sql.worker import MovableClock, Worker

if TYPE_CHECKING:
    from collections.abc import Iterator


class Hire(Protocol):
    def __call__(self, holder: str, *, open_transaction: bool = False) -> Worker: ...


@pytest.fixture(autouse=True)
def deadlocks(connection: psycopg.Connection, request: pytest.FixtureRequest) -> Iterator[None]:
    """What the server counted, whatever a client saw: none, unless the test makes one."""
    yield
    expected = int("makes_one_deadlock" in request.fixturenames)
    row = connection.execute(
        "select deadlocks from pg_stat_database where datname = current_database()"
    ).fetchone()
    assert row == (expected,)


@pytest.fixture
def makes_one_deadlock() -> None:
    """Requested by the test whose other side is not ours."""


@pytest.fixture
def queue(connection: psycopg.Connection) -> str:
    connection.execute("select fairlease.attach_queue('jobs')")
    return "jobs"


@pytest.fixture
def clock(connection: psycopg.Connection) -> MovableClock:
    return MovableClock(connection)


@pytest.fixture
def hire(database: str, queue: str) -> Iterator[Hire]:
    """Workers on sessions of their own; in an open transaction, until the test commits it."""
    with ExitStack() as sessions:

        def made(holder: str, *, open_transaction: bool = False) -> Worker:
            session = psycopg.connect(database, autocommit=not open_transaction)
            sessions.callback(session.close)
            session.execute("set lock_timeout = '15s'")
            if open_transaction:
                session.commit()
            return Worker(session, holder)

        yield made


@pytest.fixture
def send(connection: psycopg.Connection, queue: str) -> Any:
    def sent(*orgs: str) -> list[int]:
        messages = [{"message": {"n": 1}, "org": org} for org in orgs]
        row = connection.execute(
            "select pgmq_public.send_messages('jobs', %s)", (Jsonb(messages),)
        ).fetchone()
        assert row is not None
        return row[0]["ids"]

    return sent


@pytest.fixture
def call(connection: psycopg.Connection) -> Any:
    def made(worker: Worker) -> Call:
        return Call(connection, worker.session)

    return made
