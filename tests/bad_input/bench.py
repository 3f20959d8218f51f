"""Runs of the shipped engine on a real database, over either transport, and what became of it."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from psycopg.types.json import Jsonb

from fairlease.clock import SystemClock
from fairlease.drain.budget import RunBudget
from fairlease.drain.renew import in_thread
from fairlease.drain.run import Drain, RunReport
from fairlease.drain.setup import RunSetup
from fairlease.events import fan_out
from fairlease.messages.registry import Worker
from fairlease.settings import load_settings
from fairlease.telemetry.logs import log_event

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

    from fairlease.events import Event
    from fairlease.rpc import Rpc

QUEUE = "bad"
# A run that spins or hangs is over by then.
PATIENCE_SECONDS = 30.0


@dataclass
class Bench:
    """One queue, one worker; each `run` is a poke that ends when there is nothing to do."""

    url: str
    connect: Callable[[], Rpc]
    connection: psycopg.Connection
    worker: Worker = field(default_factory=Worker)
    events: list[Event] = field(default_factory=list)
    queues: tuple[str, ...] = (QUEUE,)
    knobs: dict[str, Any] = field(default_factory=dict)

    async def run(self) -> RunReport:
        rpc = self.connect()
        knobs = {"idle_budget_seconds": 0, "poll_busy_ms": 20, "poll_idle_seconds": 0.1}
        setup = RunSetup(
            run_id=f"run-{len(self.events)}",
            name="bad-input",
            queues=self.queues,
            handlers=self.worker.handlers,
            knobs=load_settings({}).knobs.model_copy(update={**knobs, **self.knobs}),
            budget=RunBudget(),
            rpc=rpc,
            clock=SystemClock(),
            dice=random.Random(1),
            observe=fan_out([self.events.append, log_event]),
        )

        async def connect() -> Rpc:
            return self.connect()

        try:
            return await asyncio.wait_for(Drain(setup, in_thread(connect)).run(), PATIENCE_SECONDS)
        finally:
            await rpc.aclose()

    def said(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def put(self, body: Any, queue: str = QUEUE) -> int:
        """By plain SQL, as anybody may; a text is taken as JSON as it stands."""
        said = body if isinstance(body, str) else Jsonb(body)
        return self.value("select pgmq.send(%s, %s::jsonb)", queue, said)

    def value(self, query: str, *values: Any) -> Any:
        row = self.connection.execute(query.encode(), values).fetchone()
        return None if row is None else row[0]

    def where(self, msg_id: int, queue: str = QUEUE) -> list[str]:
        """Every place that holds the message: one, if all is well."""
        places = {
            "queue": f"pgmq.q_{queue} where true",
            "archive": f"pgmq.a_{queue} where true",
            "dead": f"fairlease.dead_letters where queue = '{queue}'",
            "conflicts": f"fairlease.archive_conflicts where queue = '{queue}'",
        }
        return [
            place
            for place, table in places.items()
            if self.value("select to_regclass(%s)", table.split()[0])
            and self.value(f"select count(*) from {table} and msg_id = %s", msg_id)
        ]

    def due(self, queue: str = QUEUE) -> None:
        """As if every timeout and delay were over."""
        self.connection.execute(f"update pgmq.q_{queue} set vt = now()".encode())

    def seconds_to_wait(self, msg_id: int) -> float:
        ask = f"select extract(epoch from vt - now()) from pgmq.q_{QUEUE} where msg_id = %s"
        return float(self.value(ask, msg_id))
