"""The work of a cell, and what may never happen while it is done."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg

from skew.levels import QUEUE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

SAMPLE_SECONDS = 0.005


@dataclass
class Work:
    """Counts what runs at once, in the whole fleet and per org, and how often each was begun."""

    begun: Counter[int] = field(default_factory=Counter)
    running: Counter[str] = field(default_factory=Counter)
    most_of_an_org: int = 0
    most_seats: int = 0
    most_seats_of_an_org: int = 0
    samples: int = 0

    async def do(self, org: str, msg_id: int, seconds: float) -> None:
        self.begun[msg_id] += 1
        self.running[org] += 1
        self.most_of_an_org = max(self.most_of_an_org, self.running[org])
        try:
            await asyncio.sleep(seconds)
        finally:
            self.running[org] -= 1

    @asynccontextmanager
    async def seats_sampled(self, url: str, slots: str) -> AsyncIterator[None]:
        """Look at the live slots all the while."""
        stopped = asyncio.Event()
        sampling = asyncio.create_task(self._sample(url, slots, stopped))
        try:
            yield
        finally:
            stopped.set()
            await sampling

    async def _sample(self, url: str, slots: str, stopped: asyncio.Event) -> None:
        count = (
            f"select coalesce(sum(n), 0), coalesce(max(n), 0) from (select count(*) n from {slots}"
            " where holder is not null and expires_at > clock_timestamp() group by org) of_org"
        )
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as session:
            while not stopped.is_set():
                cursor = await session.execute(count)
                seats, of_an_org = await cursor.fetchone() or (0, 0)
                self.most_seats = max(self.most_seats, int(seats))
                self.most_seats_of_an_org = max(self.most_seats_of_an_org, of_an_org)
                self.samples += 1
                await asyncio.sleep(SAMPLE_SECONDS)


def send(
    session: psycopg.Connection, orgs: Mapping[str, int], ms: int = 20, queue: str = QUEUE
) -> set[int]:
    """So many messages of each org, mixed; no two take equally long."""
    bodies = [
        {"org": org, "method": "work", "args": {"ms": ms + 7 * k % 30}}
        for org, count in orgs.items()
        for k in range(count)
    ]
    bodies.sort(key=lambda body: body["args"]["ms"])
    ids = session.execute(
        "select pgmq.send(%s, body) from jsonb_array_elements(%s::jsonb) body",
        [queue, json.dumps(bodies)],
    )
    return {msg_id for (msg_id,) in ids.fetchall()}


def left(session: psycopg.Connection, queue: str = QUEUE) -> set[int]:
    return {row[0] for row in session.execute(f"select msg_id from pgmq.q_{queue}").fetchall()}


def archived(session: psycopg.Connection, queue: str = QUEUE) -> list[int]:
    return [row[0] for row in session.execute(f"select msg_id from pgmq.a_{queue}").fetchall()]
