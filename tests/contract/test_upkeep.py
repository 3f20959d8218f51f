"""What monitors and maintenance ask of the database, through both transports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fairlease.errors import FunctionMissing
from fairlease.model import NewMessage, QueueStats

if TYPE_CHECKING:
    import psycopg

    from fairlease.rpc import Database

SECONDS = 20.0


async def test_queues_are_measured(rpc: Database, queue: str) -> None:
    await rpc.send_messages(queue, [NewMessage({}, org="a")] * 2, timeout_seconds=SECONDS)
    await rpc.send_messages(queue, [NewMessage({}, org="a")], 60, timeout_seconds=SECONDS)
    (stats,) = await rpc.queue_stats(timeout_seconds=SECONDS)
    assert 0 < stats.oldest_age_seconds < SECONDS
    age = stats.oldest_age_seconds
    assert stats == QueueStats(queue, ready=2, delayed=1, oldest_age_seconds=age)


async def test_upkeep_says_what_each_step_removed(
    rpc: Database, queue: str, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue(%s, retention => '1 second')", [queue])
    connection.execute("select pgmq.send(%s, '{}')", [queue])
    connection.execute("select pgmq.archive(%s, 1)", [queue])
    connection.execute("update pgmq.a_contract set archived_at = now() - interval '1 hour'")
    assert await rpc.maintain_queues(10, timeout_seconds=SECONDS) == {
        "lapsed_slots": 0,
        "history": 0,
        f"{queue}: archive": 1,
        f"{queue}: dead_letters": 0,
        f"{queue}: message_state": 0,
    }


async def test_an_older_database_is_said_to_lack_them(
    rpc: Database, connection: psycopg.Connection
) -> None:
    connection.execute("drop function pgmq_public.queue_stats, pgmq_public.maintain_queues")
    connection.execute("notify pgrst, 'reload schema'")
    with pytest.raises(FunctionMissing):
        await rpc.queue_stats(timeout_seconds=SECONDS)
    with pytest.raises(FunctionMissing):
        await rpc.maintain_queues(10, timeout_seconds=SECONDS)
