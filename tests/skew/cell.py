"""One cell of the matrix: a fleet of one kind of worker drains a queue of one database."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from fairlease.transports.postgrest import PostgrestRpc
from skew.schemas import HEARTBEAT, PIN, SETTLE, Schema
from skew.work import Work, archived, left, send
from skew.workers import (
    CONCURRENCY,
    GLOBAL_CAP,
    MAX_PER_ORG,
    DrainWorker,
    NoHeartbeatRpc,
    NoPinRpc,
    OlderWorker,
    Poked,
)

if TYPE_CHECKING:
    from skew.api import Api

#: One worker more than the fleet has slots.
FLEET = GLOBAL_CAP + 1
ORGS = {"a": 7, "b": 4, "c": 4}
PATIENCE_SECONDS = 40.0
POKE_SECONDS = 0.05

WORKERS = ("this", "batch", "no_heartbeat", "no_pin", "older")
#: What each kind of worker does not use, whatever the database has.
_UNUSED = {
    "no_heartbeat": frozenset({HEARTBEAT}),
    "no_pin": frozenset({PIN, SETTLE}),
}


def worker_of(kind: str, api: Api, work: Work) -> Poked:
    if kind == "older":
        return OlderWorker(api.url, api.key, work)
    client = {"no_heartbeat": NoHeartbeatRpc, "no_pin": NoPinRpc}.get(kind, PostgrestRpc)
    return DrainWorker(lambda: client(api.url, api.key), work, refill=kind != "batch")


def degrades(kind: str, lacked: frozenset[str]) -> set[str]:
    """What this kind of worker must say that it does without."""
    if kind == "older":
        return set()
    missed = set(lacked | _UNUSED.get(kind, frozenset()))
    # A batch at a time tops nothing up, so it never asks for a pin.
    return missed - ({PIN} if kind == "batch" else set())


@dataclass
class Cell:
    """`url` logs in as who may look at everything. While `fed`, an empty queue ends nothing."""

    schema: Schema
    url: str
    work: Work
    sent: set[int]
    fed: bool = False

    @classmethod
    def filled(cls, schema: Schema, url: str) -> Cell:
        with psycopg.connect(url, autocommit=True) as session:
            return cls(schema, url, Work(), send(session, ORGS))

    async def drain(self, kinds: list[str], api: Api, *, pokes: int | None = None) -> list[str]:
        """Poke a fleet until the queue is empty, or so often; why each run ended, as they did."""
        fleet = [worker_of(kind, api, self.work) for kind in kinds]
        ends: list[str] = []
        try:
            async with (
                asyncio.timeout(PATIENCE_SECONDS),
                self.work.seats_sampled(self.url, self.schema.slots),
            ):
                await asyncio.gather(*(self._poke(worker, ends, pokes) for worker in fleet))
        finally:
            for worker in fleet:
                await worker.aclose()
        return ends

    async def _poke(self, worker: Poked, ends: list[str], pokes: int | None) -> None:
        for poke in itertools.count():
            if poke == pokes or not (self.fed or self.left()):
                return
            ends.append(await worker.run())
            await asyncio.sleep(POKE_SECONDS)

    def left(self) -> set[int]:
        with psycopg.connect(self.url, autocommit=True) as session:
            return left(session)

    def check_all_done(self) -> None:
        """Nothing was lost, nothing was done twice, and every cap held."""
        with psycopg.connect(self.url, autocommit=True) as session:
            assert left(session) == set()
            assert sorted(archived(session)) == sorted(self.sent)
        assert set(self.work.begun) == self.sent
        assert set(self.work.begun.values()) == {1}
        self.check_caps()

    def check_caps(self) -> None:
        assert self.work.most_of_an_org <= MAX_PER_ORG * CONCURRENCY
        assert self.work.most_seats <= GLOBAL_CAP
        assert self.work.most_seats_of_an_org <= MAX_PER_ORG

    def check_it_worked_at_once(self) -> None:
        """Caps that were never approached prove nothing."""
        assert self.work.samples > 3
        assert self.work.most_of_an_org == CONCURRENCY
        assert self.work.most_seats > 1


def check_said_once(lines: list[dict[str, Any]], expected: set[str]) -> None:
    """One line a run for each thing that it does without, as it is met, with what is done instead;
    and all of it in the line that ends the run."""
    degraded = [line for line in lines if line["event"] == "degraded"]
    said = Counter((line["run_id"], line["function"]) for line in degraded)
    assert {function for _, function in said} == expected
    assert set(said.values()) <= {1}, said
    assert all(line["instead"] for line in degraded)
    for ended in (line for line in lines if line["event"] == "run_ended"):
        assert set(ended["degraded"]) == {f for run, f in said if run == ended["run_id"]}
