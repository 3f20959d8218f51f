"""A worker dies by SIGKILL at each of its verbs; another one finishes what it left behind."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from crash.processes import WorkerProcess, working
from crash.worker_process import Orders
from fairlease.transports.postgres import PostgresRpc
from skew.work import Work, archived, left, send
from skew.workers import DrainWorker

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

POINTS = (
    "poke",
    "before claim",
    "after claim",
    "handle",
    "before settle",
    "after settle",
    "before release",
    "after release",
)
CONCURRENCY = 2
VISIBILITY_SECONDS = 4
KNOBS = {
    "drain_concurrency": CONCURRENCY,
    "org_slot_max_per_org": 1,
    "org_slot_global_cap": 64,
    "visibility_timeout_seconds": VISIBILITY_SECONDS,
    "org_slot_lease_ttl_seconds": 3,
    "idle_budget_seconds": 0,
}
#: What a busy machine may add to the time until another worker starts a message.
SLACK_SECONDS = 2.0
POKE_SECONDS = 0.1
MESSAGES = 5


class Rescue(Work):
    """Also remembers when each message was begun."""

    def __init__(self) -> None:
        super().__init__()
        self.begun_at: dict[int, float] = {}

    async def do(self, org: str, msg_id: int, seconds: float) -> None:
        self.begun_at.setdefault(msg_id, time.monotonic())
        await super().do(org, msg_id, seconds)


@dataclass
class Death:
    """One queue whose first worker was killed, and what became of it."""

    point: str
    queue: str
    sent: set[int]
    killed: WorkerProcess
    killed_at: float = 0.0
    # Seconds from the kill until each message that it hid would be seen again, by the database.
    hidden: dict[int, float] = field(default_factory=dict)
    rescued: Rescue = field(default_factory=Rescue)


@pytest.fixture(scope="module")
def deaths(module_database: str) -> Iterator[dict[str, Death]]:
    """All of them at once: what costs time here is waiting for visibility timeouts."""
    with contextlib.ExitStack() as stack:
        session = stack.enter_context(psycopg.connect(module_database, autocommit=True))
        found: dict[str, Death] = {}
        for point in POINTS:
            queue = f"at_{point.replace(' ', '_')}"
            session.execute("select fairlease.attach_queue(%s)", [queue])
            # One org for each: nobody waits for another's slot.
            sent = send(session, {queue: MESSAGES}, queue=queue)
            orders = Orders(module_database, queue, stop_at=point, knobs=KNOBS)
            killed = stack.enter_context(working(orders))
            found[point] = Death(point, queue, sent, killed)
        for death in found.values():
            _kill_there(death, session)
        asyncio.run(_rescue(module_database, found.values()))
        yield found


def _kill_there(death: Death, session: psycopg.Connection) -> None:
    death.killed.wait_for("at", point=death.point)
    death.killed.kill()
    death.killed_at = time.monotonic()
    rows = session.execute(
        f"select msg_id, extract(epoch from vt - clock_timestamp()) from pgmq.q_{death.queue}"
    ).fetchall()
    death.hidden = {msg_id: float(seconds) for msg_id, seconds in rows if seconds > 0}


async def _rescue(url: str, deaths: Any) -> None:
    await asyncio.gather(*(_rescue_one(url, death) for death in deaths))


async def _rescue_one(url: str, death: Death) -> None:
    worker = DrainWorker(
        lambda: PostgresRpc(url, connections=1), death.rescued, queue=death.queue, **KNOBS
    )
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as session:
        async with asyncio.timeout(5 * VISIBILITY_SECONDS):
            while True:
                await worker.run()
                cursor = await session.execute(f"select from pgmq.q_{death.queue} limit 1")
                if await cursor.fetchone() is None:
                    break
                await asyncio.sleep(POKE_SECONDS)
    await worker.aclose()


@pytest.mark.parametrize("point", POINTS)
def test_every_message_is_done_and_settled_once(
    deaths: dict[str, Death], point: str, module_database: str
) -> None:
    death = deaths[point]
    with psycopg.connect(module_database, autocommit=True) as session:
        assert left(session, death.queue) == set()
        assert sorted(archived(session, death.queue)) == sorted(death.sent)
    ended = {*death.killed.ids_of("end"), *death.rescued.begun}
    assert ended == death.sent


@pytest.mark.parametrize("point", POINTS)
def test_only_what_the_dead_had_hidden_is_done_again(deaths: dict[str, Death], point: str) -> None:
    death = deaths[point]
    assert set(death.rescued.begun.values()) <= {1}
    again = set(death.rescued.begun) & set(death.killed.ids_of("start"))
    assert again <= set(death.hidden)
    expected = {"handle": 1, "before settle": 1}.get(point, 0)
    assert len(again) >= expected


@pytest.mark.parametrize("point", POINTS)
def test_what_the_dead_had_hidden_is_stranded_for_one_visibility_timeout_at_most(
    deaths: dict[str, Death], point: str
) -> None:
    death = deaths[point]
    hides = point not in ("poke", "before claim", "before release", "after release")
    assert bool(death.hidden) == hides
    assert all(seconds <= VISIBILITY_SECONDS for seconds in death.hidden.values())
    for msg_id in death.hidden:
        waited = death.rescued.begun_at[msg_id] - death.killed_at
        assert waited <= VISIBILITY_SECONDS + SLACK_SECONDS, msg_id


@pytest.mark.parametrize("point", POINTS)
def test_the_org_never_has_more_in_flight_than_its_slot_allows(
    deaths: dict[str, Death], point: str
) -> None:
    death = deaths[point]
    assert death.rescued.most_of_an_org <= CONCURRENCY
    assert len(death.killed.ids_of("start")) - len(death.killed.ids_of("end")) <= CONCURRENCY
