from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest
from psycopg.types.json import Jsonb

from sql.worker import MovableClock, Worker

if TYPE_CHECKING:
    import psycopg


class Hire(Protocol):
    def __call__(self, holder: str = "h1", queue: str = "jobs") -> Worker: ...


class Send(Protocol):
    def __call__(self, *orgs: str, queue: str = "jobs", sleep_seconds: int = 0) -> list[int]: ...


@pytest.fixture
def clock(connection: psycopg.Connection) -> MovableClock:
    return MovableClock(connection)


@pytest.fixture
def queue(connection: psycopg.Connection) -> str:
    connection.execute("select fairlease.attach_queue('jobs')")
    return "jobs"


@pytest.fixture
def hire(connection: psycopg.Connection, queue: str) -> Hire:
    def made(holder: str = "h1", queue: str = "jobs") -> Worker:
        return Worker(connection, holder, queue)

    return made


@pytest.fixture
def send(connection: psycopg.Connection, queue: str) -> Send:
    """One message for each org named, visible at once; returns their ids."""

    def sent(*orgs: str, queue: str = "jobs", sleep_seconds: int = 0) -> list[int]:
        messages: list[dict[str, Any]] = [{"message": {"n": 1}, "org": org} for org in orgs]
        row = connection.execute(
            "select pgmq_public.send_messages(%s, %s, %s)", (queue, Jsonb(messages), sleep_seconds)
        ).fetchone()
        assert row is not None
        return row[0]["ids"]

    return sent
