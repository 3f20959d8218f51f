"""A worker is frozen for longer than its lease and its messages' timeout, then goes on: another one
has taken over, and nothing that the frozen one says counts any more."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

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

QUEUE = "frozen"
VISIBILITY_SECONDS, LEASE_SECONDS = 3, 2
KNOBS = {
    "drain_concurrency": 2,
    "org_slot_max_per_org": 1,
    "visibility_timeout_seconds": VISIBILITY_SECONDS,
    "org_slot_lease_ttl_seconds": LEASE_SECONDS,
    "idle_budget_seconds": 0,
}
FROZEN_SECONDS = VISIBILITY_SECONDS + 0.5


class Slow(Work):
    """The successor takes its time: the frozen one comes back while it works."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.busy = asyncio.Event()

    async def do(self, org: str, msg_id: int, seconds: float) -> None:
        self.busy.set()
        await super().do(org, msg_id, self.seconds)


@pytest.fixture
def session(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as session:
        session.execute("select fairlease.attach_queue(%s)", [QUEUE])
        yield session


async def take_over(worker: DrainWorker, work: Slow) -> asyncio.Task[str]:
    """Poke until this worker has the message; the run that has it."""
    async with asyncio.timeout(20):
        while True:
            running = asyncio.create_task(worker.run())
            busy = asyncio.create_task(work.busy.wait())
            await asyncio.wait({running, busy}, return_when=asyncio.FIRST_COMPLETED)
            if busy.done():
                return running
            busy.cancel()
            await asyncio.sleep(0.1)


async def freeze_and_thaw(
    database: str, session: psycopg.Connection, ms: int, work: Slow
) -> tuple[int, WorkerProcess]:
    """The frozen worker's message takes `ms`; answers its id and that worker."""
    (msg_id,) = send(session, {"a": 1}, ms=ms, queue=QUEUE)
    successor = DrainWorker(lambda: PostgresRpc(database), work, queue=QUEUE, **KNOBS)
    with working(Orders(database, QUEUE, knobs=KNOBS)) as frozen:
        await asyncio.to_thread(frozen.wait_for, "start")
        frozen.send(signal.SIGSTOP)
        await asyncio.sleep(FROZEN_SECONDS)
        run = await take_over(successor, work)
        frozen.send(signal.SIGCONT)
        await asyncio.to_thread(frozen.wait_for, "report")
        await asyncio.to_thread(frozen.read_all)
        await run
    await successor.aclose()
    return msg_id, frozen


@pytest.mark.slow
async def test_what_it_still_settles_is_lost_and_changes_nothing(
    database: str, session: psycopg.Connection
) -> None:
    """Its handler ends in the instant of the thaw, before anyone can tell it."""
    msg_id, frozen = await freeze_and_thaw(database, session, 1_000, work := Slow(3.0))
    results = [line["result"] for line in frozen.all_of("SettleAnswered")]
    assert results in ([], ["lost"]), frozen.told
    assert frozen.all_of("DeliveryLost") or results == ["lost"]
    assert (archived(session, QUEUE), left(session, QUEUE)) == ([msg_id], set())
    assert work.begun == {msg_id: 1}
    row = session.execute(f"select read_ct from pgmq.a_{QUEUE}").fetchone()
    assert row == (2,)


@pytest.mark.slow
async def test_a_handler_that_goes_on_is_cancelled_and_says_nothing(
    database: str, session: psycopg.Connection
) -> None:
    msg_id, frozen = await freeze_and_thaw(database, session, 30_000, work := Slow(3.0))
    assert [line["msg_id"] for line in frozen.all_of("DeliveryLost")] == [msg_id]
    assert [line["reason"] for line in frozen.all_of("HandlerCancelled")] == ["lost"]
    assert frozen.ids_of("end") == []
    assert frozen.all_of("SettleAnswered") == []
    assert (archived(session, QUEUE), left(session, QUEUE)) == ([msg_id], set())
    assert work.begun == {msg_id: 1}
