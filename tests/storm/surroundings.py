"""What goes on around the sessions: sending, killing, and the checker that samples all the time."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.types.json import Jsonb

from .scene import CAPS, ORGS, QUEUES

if TYPE_CHECKING:
    import random

    from .tally import Tally

# One snapshot; the clock is read after it, so that nothing counts as live that was not.
LIVE = """
select s.org, count(*) from fairlease.seats s, (select fairlease.now_() as now) c
where s.holder is not null and s.expires_at > c.now
group by s.org
"""
# Every message sent is in exactly one place, in every snapshot.
PLACES = """
with placed as (
  select 'squall' as queue, msg_id from pgmq.q_squall
  union all select 'squall', msg_id from pgmq.a_squall
  union all select 'gust', msg_id from pgmq.q_gust
  union all select 'gust', msg_id from pgmq.a_gust
  union all select queue, msg_id from fairlease.dead_letters
  union all select queue, msg_id from fairlease.archive_conflicts
)
select (select count(*) from storm.sent), (select count(*) from placed),
  (select count(*) from storm.sent s
    where not exists (select from placed p where (p.queue, p.msg_id) = (s.queue, s.msg_id)))
"""
SEND = """
with ids as (select pgmq_public.send_messages(%(queue)s, %(messages)s) -> 'ids' as list)
insert into storm.sent (queue, msg_id)
select %(queue)s, value::bigint from ids, jsonb_array_elements_text(ids.list)
"""
VICTIM = """
select pg_terminate_backend(a.pid) from pg_stat_activity a
where a.application_name like 'storm %' and a.datname = current_database()
  and (a.state = 'active' or random() < 0.1)
order by random() limit 1
"""
ENOUGH_WAITING = 150


@dataclass
class Surroundings:
    url: str
    dice: random.Random
    tally: Tally
    stop: asyncio.Event

    def connect(self) -> Any:
        return psycopg.AsyncConnection.connect(self.url, autocommit=True)

    async def wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stop.wait(), seconds)

    async def send(self) -> None:
        async with await self.connect() as connection:
            while not self.stop.is_set():
                for queue in QUEUES:
                    cursor = await connection.execute(
                        f"select count(*) from pgmq.q_{queue} where vt <= fairlease.now_()"
                    )
                    if (await cursor.fetchone())[0] < ENOUGH_WAITING:
                        await self.send_some(connection, queue)
                await self.wait(0.1)

    async def send_some(self, connection: psycopg.AsyncConnection[Any], queue: str) -> None:
        weights = [len(ORGS), *[1] * (len(ORGS) - 1)]
        orgs = self.dice.choices(ORGS, weights, k=50)
        messages = Jsonb([{"message": {"of": org}, "org": org} for org in orgs])
        await connection.execute(SEND, {"queue": queue, "messages": messages})

    async def kill(self) -> None:
        async with await self.connect() as connection:
            while not self.stop.is_set():
                cursor = await connection.execute(VICTIM)
                self.tally.counts["backends terminated"] += len(await cursor.fetchall())
                await self.wait(self.dice.uniform(0.02, 0.5))

    async def watch_slots(self) -> None:
        async with await self.connect() as connection:
            while not self.stop.is_set():
                await self.sample_slots(connection)
                await self.wait(0.003)

    async def sample_slots(self, connection: psycopg.AsyncConnection[Any]) -> None:
        cursor = await connection.execute(LIVE)
        live: dict[str, int] = dict(await cursor.fetchall())
        total = sum(live.values())
        self.tally.counts["samples of slots"] += 1
        self.tally.counts["samples at the fleet cap"] += total == CAPS.fleet
        self.tally.most_live = max(self.tally.most_live, total)
        if total > CAPS.fleet:
            self.tally.breach(f"{total} slots live, the cap is {CAPS.fleet}")
        for org, count in live.items():
            self.tally.counts["samples at an org's cap"] += count == CAPS.of(org)
            if count > CAPS.of(org):
                self.tally.breach(f"{count} slots of {org} live, its cap is {CAPS.of(org)}")

    async def watch_accounts(self) -> None:
        async with await self.connect() as connection:
            while not self.stop.is_set():
                await self.balance(connection)
                await self.wait(0.25)

    async def balance(self, connection: psycopg.AsyncConnection[Any]) -> None:
        cursor = await connection.execute(PLACES)
        sent, placed, missing = (await cursor.fetchall())[0]
        self.tally.counts["samples of accounts"] += 1
        if sent != placed or missing:
            self.tally.breach(f"{sent} sent, {placed} in some place, {missing} in none")
