"""D11, D16 with real threads on the real clock: the renewal, the watchdog, plain handlers."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from fairlease.clock import SystemClock
from fairlease.drain.budget import RunBudget
from fairlease.drain.renew import in_thread
from fairlease.drain.run import Drain
from fairlease.drain.setup import RunSetup
from fairlease.drain.watchdog import in_own_thread
from fairlease.events import Event, HandlerEnded, LeaseLost, LoopBlocked
from fairlease.messages.context import Context  # noqa: TC001 - registration resolves it
from fairlease.messages.registry import Worker
from fairlease.simulate.database import Database
from fairlease.simulate.wire import Wire

from .rig import KNOBS

if TYPE_CHECKING:
    from fairlease.rpc import Rpc

TTL_SECONDS = 2
BLOCKED_FOR_SECONDS = 3 * TTL_SECONDS + 0.2


class Nothing(BaseModel):
    pass


def block_the_loop_for_three_leases(seconds: float) -> None:
    time.sleep(seconds)


def drain_of(database: Database, worker: Worker, events: list[Event], **knobs: Any) -> Drain:
    scaled = {
        "org_slot_lease_ttl_seconds": TTL_SECONDS,
        "visibility_timeout_seconds": 2 * TTL_SECONDS,
        "idle_budget_seconds": 0,
        "drain_concurrency": 1,
    }
    setup = RunSetup(
        run_id="run",
        name="threads",
        queues=("q",),
        handlers=worker.handlers,
        knobs=KNOBS.model_copy(update={**scaled, **knobs}),
        budget=RunBudget(),
        rpc=Wire(database),
        clock=SystemClock(),
        dice=random.Random(1),
        observe=events.append,
    )

    async def connect() -> Rpc:
        return Wire(database)

    return Drain(setup, in_thread(connect), in_own_thread)


class Sampler(threading.Thread):
    """Looks from outside, while the loop is blocked, whether the slot and the message are kept."""

    def __init__(self, database: Database) -> None:
        super().__init__(daemon=True)
        self.database, self.over = database, threading.Event()
        self.lapsed: list[float] = []
        self.visible: list[float] = []

    def run(self) -> None:
        while not self.over.wait(0.05):
            now = time.monotonic()
            self.lapsed += [
                now for s in self.database.slots.by_holder.values() if s.expires_at < now
            ]
            rows = self.database.queues["q"].rows.values()
            self.visible += [now for row in tuple(rows) if row.read_ct and row.visible_at < now]


async def test_d11_a_handler_that_blocks_the_loop_for_three_ttls_keeps_its_lease_and_is_named() -> (
    None
):
    database = Database(time.monotonic)
    database.attach("q")
    worker, events = Worker(), []
    sampler = Sampler(database)

    @worker.handler("block")
    async def block(args: Nothing, ctx: Context) -> None:
        block_the_loop_for_three_leases(BLOCKED_FOR_SECONDS)

    database.send("q", "a", {"method": "block"})
    sampler.start()
    report = await drain_of(database, worker, events).run()
    sampler.over.set()
    sampler.join()

    assert (sampler.lapsed, sampler.visible) == ([], [])
    assert [event for event in events if isinstance(event, LeaseLost)] == []
    assert {row.read_ct for row in database.queues["q"].archive.values()} == {1}
    assert report.reason == "idle"
    # Once for the handler, however long it blocks: by its name and with its stack.
    (blocked,) = [event for event in events if isinstance(event, LoopBlocked)]
    assert blocked.task == "block of message 1"
    assert "block_the_loop_for_three_leases" in blocked.stack
    assert 1.0 <= blocked.seconds < 3.0
    assert not [t for t in threading.enumerate() if t.name == "fairlease-renewal"]


async def test_a_plain_function_past_its_timeout_stays_in_flight_until_its_thread_ends() -> None:
    database = Database(time.monotonic)
    database.attach("q")
    worker, events = Worker(), []
    leave, running_at_stop = threading.Event(), []

    @worker.handler("wait", timeout=0.2)
    def wait(args: Nothing, ctx: Context) -> None:
        leave.wait(5.0)
        raise ValueError("too late")

    database.send("q", "a", {"method": "wait"})
    drain = drain_of(database, worker, events)
    running = asyncio.create_task(drain.run())
    await asyncio.sleep(0.6)
    running_at_stop += [len(drain.in_flight.running), len(database.slots.by_holder)]
    leave.set()
    await running

    assert running_at_stop == [1, 1]
    (ended,) = [event for event in events if isinstance(event, HandlerEnded)]
    assert ended.outcome == "RetryLater"
    assert database.slots.by_holder == {}


async def test_d11_a_run_ends_also_where_handlers_keep_every_thread_of_the_loops_own_pool() -> None:
    database = Database(time.monotonic)
    database.attach("q")
    leave = threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    hanging = asyncio.create_task(asyncio.to_thread(leave.wait, 30.0))
    await asyncio.sleep(0.05)
    try:
        report = await asyncio.wait_for(drain_of(database, Worker(), []).run(), 10.0)
    finally:
        leave.set()
    await hanging

    assert report.reason == "idle"
    assert not [t for t in threading.enumerate() if t.name == "fairlease-renewal"]
