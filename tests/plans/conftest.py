from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    import psycopg


class Buffers(Protocol):
    def __call__(self, statement: str, *arguments: Any) -> int: ...


class Fill(Protocol):
    def __call__(
        self, rows: int, *, org: str, visible: str = "interval '-1 s'", analyze: bool = True
    ) -> None: ...


@pytest.fixture
def buffers(connection: psycopg.Connection) -> Buffers:
    """Pages that one warm call touches, nested statements included: plans show there, time not."""

    def counted(statement: str, *arguments: Any) -> int:
        row = connection.execute(
            f"explain (analyze, buffers, timing off, format json) {statement}", arguments
        ).fetchone()
        assert row is not None
        plan = row[0][0]["Plan"]
        return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]

    return counted


@pytest.fixture
def fill(connection: psycopg.Connection) -> Fill:
    """Messages of the queue `jobs`; `org` is SQL over i, the number of the row."""
    connection.execute("select fairlease.attach_queue('jobs')")

    def filled(
        rows: int, *, org: str, visible: str = "interval '-1 s'", analyze: bool = True
    ) -> None:
        connection.execute(
            "insert into pgmq.q_jobs (vt, message, headers) select clock_timestamp() + "
            f"{visible}, jsonb_build_object('n', i), jsonb_build_object('x-org', {org}) "
            f"from generate_series(1, {rows}) i"
        )
        if analyze:
            connection.execute("vacuum (analyze) pgmq.q_jobs")

    return filled
