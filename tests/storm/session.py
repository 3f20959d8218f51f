"""One session of the storm: a client that claims, tops up, settles and dies at random."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.types.json import Jsonb

from .scene import GLOBAL_CAP, LOWER_CAP, MAX_PER_ORG, QUEUES
from .tally import Tally

if TYPE_CHECKING:
    import random

CLAIM = (
    "select status, org, msg_id, read_ct from pgmq_public.claim_org_slot_and_read"
    "(%s, %s::int, %s::int, %s, %s::int, %s::int, %s::int, %s)"
)
SETTLE = (
    "select pgmq_public.settle_and_claim"
    "(%s, %s, %s, %s::int, %s::int, %s::int, %s::int, %s::int, %s)"
)
HEARTBEAT = "select pgmq_public.heartbeat_org_slot(%s, %s, %s::int, %s::int, %s)"
VERBS = ("done",) * 12 + ("retry", "retry", "snooze", "give_back", "dead")
DEATH = (psycopg.OperationalError, psycopg.InterfaceError)


@dataclass
class Attic:
    """Deliveries that somebody settled, settles now, or has died with; anybody repeats them."""

    kept: dict[str, list[tuple[int, int]]] = field(
        default_factory=lambda: {queue: [] for queue in QUEUES}
    )

    def put(self, queue: str, deliveries: list[tuple[int, int]]) -> None:
        self.kept[queue] += deliveries
        del self.kept[queue][:-30]

    def some(self, queue: str, dice: random.Random) -> list[tuple[int, int]]:
        kept = list({number: (number, ct) for number, ct in self.kept[queue]}.values())
        return dice.sample(kept, min(len(kept), dice.randint(1, 8)))


@dataclass
class Session:
    """Its holder's name is never used again after a death."""

    url: str
    number: int
    dice: random.Random
    tally: Tally
    stop: asyncio.Event
    attic: Attic
    lives: int = 0
    queue: str = QUEUES[0]
    org: str | None = None
    deliveries: list[tuple[int, int]] = field(default_factory=list)

    @property
    def holder(self) -> str:
        return f"session{self.number}/{self.lives}"

    async def live(self) -> None:
        while not self.stop.is_set():
            self.be_born()
            with contextlib.suppress(*DEATH):
                async with await psycopg.AsyncConnection.connect(
                    self.url, autocommit=True, application_name=f"storm {self.number}"
                ) as connection:
                    await self.act_until_death(connection)

    def be_born(self) -> None:
        self.lives += 1
        self.attic.put(self.queue, self.deliveries)
        self.queue, self.org, self.deliveries = self.dice.choice(QUEUES), None, []

    async def act_until_death(self, connection: psycopg.AsyncConnection[Any]) -> None:
        try:
            while not self.stop.is_set():
                await self.act(connection)
        except DEATH:
            self.tally.counts["deaths in a call"] += 1
            raise
        except psycopg.Error as error:
            self.tally.breach(f"{type(error).__name__}: {str(error).splitlines()[0]}")

    async def act(self, connection: psycopg.AsyncConnection[Any]) -> None:
        if self.org is None:
            await self.claim(connection, None)
            if self.org is None:
                await self.pause(self.dice.uniform(0.01, 0.1))
            return
        deeds = {
            self.settle: 30,
            self.top_up: 25,
            self.renew: 8,
            self.heartbeat: 10,
            self.wander: 8,
            self.release: 6,
            self.settle_old: 12,
            self.vanish: 4,
            self.doze: 3,
            self.die_in_a_transaction: 2,
        }
        await self.dice.choices(list(deeds), list(deeds.values()))[0](connection)

    async def pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stop.wait(), seconds)

    async def top_up(self, connection: psycopg.AsyncConnection[Any]) -> None:
        await self.claim(connection, self.org)

    async def wander(self, connection: psycopg.AsyncConnection[Any]) -> None:
        await self.claim(connection, None)

    async def vanish(self, _connection: psycopg.AsyncConnection[Any]) -> None:
        self.tally.counts["vanished with a lease"] += 1
        self.be_born()

    async def doze(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Long enough for the shorter leases to lapse."""
        await self.pause(1.2)
        await self.heartbeat(connection)

    def terms(self) -> list[int]:
        """Visibility timeout, lease, and the caps of this caller: some callers ask for less."""
        seconds = (1, 1, 2, 5)
        cap = self.dice.choice((LOWER_CAP, GLOBAL_CAP, GLOBAL_CAP, GLOBAL_CAP))
        return [self.dice.choice(seconds), self.dice.choice(seconds), MAX_PER_ORG, cap]

    async def claim(self, connection: psycopg.AsyncConnection[Any], pin: str | None) -> None:
        sleep, lease, per_org, cap = self.terms()
        n = self.dice.randint(1, 5)
        cursor = await connection.execute(
            CLAIM, [self.queue, sleep, n, self.holder, lease, per_org, cap, pin]
        )
        rows = await cursor.fetchall()
        self.heard(rows[0][0], rows[0][1], pin, [row[2:] for row in rows])

    def heard(
        self, status: str, org: str | None, pin: str | None, messages: list[tuple[int, int]]
    ) -> None:
        self.tally.counts[status] += 1
        if status != "claimed":
            if pin is None:
                self.org = None
            return
        self.tally.counts["topped up"] += pin is not None
        if pin not in (None, org):
            self.tally.breach(f"pinned to {pin}, served {org}")
        self.org = org
        self.deliveries += messages

    def picked(self) -> list[tuple[int, int]]:
        self.dice.shuffle(self.deliveries)
        count = self.dice.randint(0, len(self.deliveries))
        picked, self.deliveries = self.deliveries[:count], self.deliveries[count:]
        return picked

    async def settle(self, connection: psycopg.AsyncConnection[Any]) -> None:
        picked = self.picked()
        self.attic.put(self.queue, picked)
        pin = self.org if self.dice.random() < 0.8 else None
        await self.call_settle(connection, self.queue, picked, self.dice.choice((0, 1, 5)), pin)

    async def settle_old(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """What is settled already, at this moment by another, or overtaken by a later delivery."""
        queue = self.dice.choice(QUEUES)
        await self.call_settle(connection, queue, self.attic.some(queue, self.dice), 0, None)

    async def call_settle(
        self,
        connection: psycopg.AsyncConnection[Any],
        queue: str,
        picked: list[tuple[int, int]],
        n: int,
        pin: str | None,
    ) -> None:
        outcomes = [
            {"id": i, "ct": c, "do": self.dice.choice(VERBS), "after_ms": self.dice.randint(0, 900)}
            for i, c in picked
        ]
        cursor = await connection.execute(
            SETTLE, [queue, self.holder, Jsonb(outcomes), n, *self.terms(), pin]
        )
        answer = (await cursor.fetchall())[0][0]
        for delivery, row in zip(picked, answer["settled"], strict=True):
            self.tally.settled(queue, delivery, row["result"])
        if n > 0:
            messages = [(m["msg_id"], m["read_ct"]) for m in answer["messages"]]
            self.heard(answer["status"], answer["org"], pin, messages)

    async def renew(self, connection: psycopg.AsyncConnection[Any]) -> None:
        cursor = await connection.execute(
            "select pgmq_public.renew_org_slot(%s, %s, 2)", [self.queue, self.holder]
        )
        self.kept((await cursor.fetchall())[0][0], "renewed")

    async def heartbeat(self, connection: psycopg.AsyncConnection[Any]) -> None:
        said = Jsonb([list(delivery) for delivery in self.deliveries])
        cursor = await connection.execute(HEARTBEAT, [self.queue, self.holder, 2, 2, said])
        answer = (await cursor.fetchall())[0][0]
        self.kept(answer["slot_alive"], "heartbeats")
        ended = {*answer["lost"], *answer["gone"]}
        self.deliveries = [d for d in self.deliveries if d[0] not in ended]

    def kept(self, alive: bool, deed: str) -> None:
        self.tally.counts[deed if alive else "lapsed slots met"] += 1
        if not alive:
            self.org = None

    async def release(self, connection: psycopg.AsyncConnection[Any]) -> None:
        await connection.execute(
            "select pgmq_public.release_org_slot(%s, %s)", [self.queue, self.holder]
        )
        self.tally.counts["released"] += 1
        self.org = None

    async def die_in_a_transaction(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """All that it did is undone, and its locks are held until the server notices."""
        await connection.execute("begin")
        kept, self.tally = self.tally, Tally(0)
        try:
            await self.settle(connection)
        finally:
            # What was answered in this transaction never became true.
            self.tally = kept
        self.tally.counts["rolled back by death"] += 1
        await connection.close()
        raise psycopg.OperationalError("died in a transaction")
