"""The workers of the matrix: this version and its modes, and one from before this library."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import httpx
from postgrest import APIError
from pydantic import BaseModel
from supabase import AsyncClient, AsyncClientOptions

from fairlease.clock import SystemClock
from fairlease.drain.budget import RunBudget
from fairlease.drain.renew import in_thread
from fairlease.drain.run import Drain
from fairlease.drain.setup import RunSetup
from fairlease.drain.watchdog import in_own_thread
from fairlease.errors import FunctionMissing
from fairlease.events import fan_out
from fairlease.messages.context import Context  # noqa: TC001 - registration resolves it
from fairlease.messages.registry import Worker
from fairlease.settings import load_settings
from fairlease.telemetry.logs import log_event
from fairlease.transports.postgrest import PostgrestRpc
from skew.levels import QUEUE

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlease.events import Event
    from fairlease.model import ClaimAnswer, ClaimRequest, Heartbeat
    from fairlease.rpc import Rpc
    from skew.work import Work

#: Seconds instead of minutes; what is checked is the order of events, not their size.
LEASE_SECONDS = 6
VISIBILITY_SECONDS = 8
CONCURRENCY = 2
MAX_PER_ORG, GLOBAL_CAP = 1, 2


class Arguments(BaseModel):
    ms: int


class NoHeartbeatRpc(PostgrestRpc):
    """The client of a worker that was written before heartbeats: it never sends one."""

    async def heartbeat_org_slot(self, *_: Any, **__: Any) -> Heartbeat:
        _unknown("heartbeat_org_slot")


class NoPinRpc(PostgrestRpc):
    """The client of a worker that was written before pins: it never names one."""

    async def claim_org_slot_and_read(
        self, request: ClaimRequest, *, timeout_seconds: float
    ) -> ClaimAnswer:
        if request.pin_org is not None:
            _unknown("pin_org")
        return await super().claim_org_slot_and_read(request, timeout_seconds=timeout_seconds)

    async def settle_and_claim(self, *_: Any, **__: Any) -> ClaimAnswer:
        _unknown("settle_and_claim")


def _unknown(what: str) -> NoReturn:
    raise FunctionMissing(f"this worker does not know {what}", code="PGRST202")


class Poked(Protocol):
    """One worker: each `run` is one poke; the answer says why it ended."""

    async def run(self) -> str: ...

    async def aclose(self) -> None: ...


class DrainWorker:
    """Runs of the shipped engine, with the shipped composition: threads and clients as in life."""

    def __init__(
        self,
        connect: Callable[[], Rpc],
        work: Work,
        *,
        refill: bool = True,
        queue: str = QUEUE,
        **knobs: float,
    ) -> None:
        self.events: list[Event] = []
        self._queue = queue
        self._connect = connect
        self._rpc = connect()
        self._handlers = Worker()
        self._knobs = load_settings({}).knobs.model_copy(
            update={
                "drain_concurrency": CONCURRENCY,
                "org_slot_lease_ttl_seconds": LEASE_SECONDS,
                "visibility_timeout_seconds": VISIBILITY_SECONDS,
                "org_slot_max_per_org": MAX_PER_ORG,
                "org_slot_global_cap": GLOBAL_CAP,
                "org_slot_continuous_refill": int(refill),
                "idle_budget_seconds": 0,
                # A tenth and less of those in life.
                "poll_busy_ms": 20,
                "poll_idle_seconds": 0.3,
                "poll_max_seconds": 2.0,
                **knobs,
            }
        )

        @self._handlers.handler("work")
        async def handle(args: Arguments, ctx: Context) -> None:
            await work.do(ctx.org, ctx.msg_id, args.ms / 1000)

    def drain(self) -> Drain:
        setup = RunSetup(
            run_id=f"{id(self):x}-{len(self.events)}",
            name="skew",
            queues=(self._queue,),
            handlers=self._handlers.handlers,
            knobs=self._knobs,
            budget=RunBudget(),
            rpc=self._rpc,
            clock=SystemClock(),
            dice=random.Random(),
            observe=fan_out([self.events.append, log_event]),
        )

        async def connect() -> Rpc:
            return self._connect()

        return Drain(setup, in_thread(connect), in_own_thread)

    async def run(self) -> str:
        return (await self.drain().run()).reason

    async def aclose(self) -> None:
        await self._rpc.aclose()


class OlderWorker:
    """Not of this library: plain calls of `supabase`, seven arguments, a batch at a time."""

    def __init__(self, url: str, key: str, work: Work) -> None:
        self._http = httpx.AsyncClient(timeout=10.0)
        options = AsyncClientOptions(httpx_client=self._http, auto_refresh_token=False)
        self._client = AsyncClient(url, key, options)
        self._work = work
        self._runs = 0

    async def run(self) -> str:
        """What such a worker does where a call fails: it lets the next poke try again."""
        self._runs += 1
        try:
            return await self._drain(f"older/{id(self):x}/{self._runs}")
        except APIError as error:
            return f"error {error.code}"

    async def _drain(self, holder: str) -> str:
        while True:
            rows = await self._claim(holder)
            if not rows or rows[0]["status"] != "claimed":
                await self._rpc("release_org_slot", queue_name=QUEUE, holder=holder)
                return rows[0]["status"] if rows else "nothing"
            await asyncio.gather(*(self._handle(row) for row in rows))
            await self._rpc(
                "renew_org_slot",
                queue_name=QUEUE,
                holder=holder,
                lease_ttl_seconds=LEASE_SECONDS,
            )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _claim(self, holder: str) -> list[dict[str, Any]]:
        return await self._rpc(
            "claim_org_slot_and_read",
            queue_name=QUEUE,
            sleep_seconds=VISIBILITY_SECONDS,
            n=CONCURRENCY,
            holder=holder,
            lease_ttl_seconds=LEASE_SECONDS,
            max_per_org=MAX_PER_ORG,
            global_cap=GLOBAL_CAP,
        )

    async def _handle(self, row: dict[str, Any]) -> None:
        seconds = row["message"]["args"]["ms"] / 1000
        await self._work.do(row["org"], row["msg_id"], seconds)
        await self._rpc("archive", queue_name=QUEUE, message_id=row["msg_id"])

    async def _rpc(self, function: str, **arguments: Any) -> Any:
        call = self._client.schema("pgmq_public").rpc(function, arguments)
        return (await call.execute()).data
