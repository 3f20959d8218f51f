"""A storm from its beginning to the last message drained."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import psycopg
from psycopg.types.json import Jsonb

from .scene import QUEUES, set_up
from .session import Attic, Session
from .surroundings import Surroundings
from .tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable

SESSIONS = 48
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"
LEFT = "select (select count(*) from pgmq.q_squall) + (select count(*) from pgmq.q_gust)"
DRAIN = "select pgmq_public.settle_and_claim(%s, %s, %s, 100, 60, 60, 8, 8)"


async def storm(
    url: str, seconds: float, seed: int, plant: Callable[[psycopg.Connection], None] | None = None
) -> Tally:
    """Raise a storm in the migrated database at `url`; `plant` may put a fault in first."""
    with psycopg.connect(url, autocommit=True) as connection:
        if plant is not None:
            plant(connection)
        set_up(connection)
    tally = await rage(url, seconds, random.Random(seed))
    with psycopg.connect(url, autocommit=True) as connection:
        drain(connection, tally)
        tally.deadlocks = connection.execute(DEADLOCKS).fetchall()[0][0]
    return tally


async def rage(url: str, seconds: float, dice: random.Random) -> Tally:
    tally, stop, attic = Tally(seconds), asyncio.Event(), Attic()
    around = Surroundings(url, random.Random(dice.random()), tally, stop)
    async with asyncio.TaskGroup() as group:
        for number in range(SESSIONS):
            own_dice = random.Random(dice.random())
            group.create_task(Session(url, number, own_dice, tally, stop, attic).live())
        for go_on in (around.send, around.kill, around.watch_slots, around.watch_accounts):
            group.create_task(go_on())
        await asyncio.sleep(seconds)
        tally.seconds += await patience(tally, seconds)
        stop.set()
    return tally


async def patience(tally: Tally, seconds: float) -> float:
    """A slow machine gets three times as long to see all that must happen."""
    for tenths in range(int(seconds * 20)):
        if not tally.idle() or tally.breaches:
            return tenths / 10
        await asyncio.sleep(0.1)
    return seconds * 2


def drain(connection: psycopg.Connection, tally: Tally) -> None:
    """An hour later all leases and timeouts have lapsed: whatever is left must come to its end."""
    outcomes: dict[str, list[dict[str, object]]] = {queue: [] for queue in QUEUES}
    for round_ in range(10_000):
        connection.execute("update storm.clock set ahead = ahead + interval '1 hour'")
        for queue in QUEUES:
            said = Jsonb(outcomes[queue])
            answer = connection.execute(DRAIN, [queue, f"drain {round_}", said]).fetchall()[0][0]
            outcomes[queue] = [
                {"id": m["msg_id"], "ct": m["read_ct"], "do": "done"} for m in answer["messages"]
            ]
        if not any(outcomes.values()) and connection.execute(LEFT).fetchall()[0][0] == 0:
            break
    tally.sent = connection.execute("select count(*) from storm.sent").fetchall()[0][0]
    tally.drained = connection.execute(
        "select (select count(*) from pgmq.a_squall) + (select count(*) from pgmq.a_gust)"
        " + (select count(*) from fairlease.dead_letters)"
    ).fetchall()[0][0]
