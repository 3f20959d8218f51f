"""The way to the simulated database: it takes time, and fails as networks and old schemas do."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from fairlease.errors import FunctionMissing, RpcError, TransientError
from fairlease.model import Sent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlease.model import (
        ClaimAnswer,
        ClaimRequest,
        Delivery,
        Heartbeat,
        NewMessage,
        Outcome,
    )
    from fairlease.simulate.database import Database

T = TypeVar("T")

#: The functions that an older database may lack; `pin_org` is an argument of its claim.
OPTIONAL = ("settle_and_claim", "heartbeat_org_slot", "pin_org", "send_messages")


@dataclass(frozen=True, slots=True)
class Call:
    """One call as the wire saw it; `arguments` in the order of the port."""

    function: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Trip:
    """What happens to one call: seconds each way, and how it fails.

    `error` is raised instead of calling; with `lost` the call takes effect and its answer never
    comes back; `answer` replaces what the database said, or raises, after it took effect.
    """

    there_seconds: float = 0.0
    back_seconds: float = 0.0
    error: RpcError | None = None
    lost: bool = False
    answer: Callable[[Any], Any] | None = None


@dataclass(slots=True)
class Wire:
    """An `Rpc`. `travel` decides about each call; `missing` names what the schema lacks."""

    database: Database
    travel: Callable[[Call], Trip] = field(default=lambda _call: Trip())
    missing: set[str] = field(default_factory=set)
    cut: bool = False
    calls: list[Call] = field(default_factory=list)
    taken: dict[tuple[str, str], str] = field(default_factory=dict)
    # The renewal of a real run calls from a thread of its own.
    _one_transaction: threading.Lock = field(default_factory=threading.Lock)

    async def claim_org_slot_and_read(
        self, request: ClaimRequest, *, timeout_seconds: float
    ) -> ClaimAnswer:
        call = Call("claim_org_slot_and_read", (request,))
        if request.pin_org is not None and "pin_org" in self.missing:
            return await self._send(call, timeout_seconds, _no_such_arguments)
        return await self._send(call, timeout_seconds, lambda: self.database.claim(request))

    async def settle_and_claim(
        self, request: ClaimRequest, outcomes: Sequence[Outcome], *, timeout_seconds: float
    ) -> ClaimAnswer:
        told = tuple(outcomes)
        call = Call("settle_and_claim", (request, told))
        return await self._send(
            call, timeout_seconds, lambda: self.database.settle_and_claim(request, told)
        )

    async def heartbeat_org_slot(
        self,
        queue: str,
        holder: str,
        lease_ttl_seconds: int,
        sleep_seconds: int,
        deliveries: Sequence[Delivery],
        *,
        timeout_seconds: float,
    ) -> Heartbeat:
        arguments = (queue, holder, lease_ttl_seconds, sleep_seconds, tuple(deliveries))
        call = Call("heartbeat_org_slot", arguments)
        return await self._send(call, timeout_seconds, lambda: self.database.heartbeat(*arguments))

    async def renew_org_slot(
        self, queue: str, holder: str, lease_ttl_seconds: int, *, timeout_seconds: float
    ) -> bool:
        arguments = (queue, holder, lease_ttl_seconds)
        call = Call("renew_org_slot", arguments)
        return await self._send(call, timeout_seconds, lambda: self.database.renew(*arguments))

    async def release_org_slot(self, queue: str, holder: str, *, timeout_seconds: float) -> bool:
        call = Call("release_org_slot", (queue, holder))
        return await self._send(call, timeout_seconds, lambda: self.database.release(queue, holder))

    async def send_messages(
        self,
        queue: str,
        messages: Sequence[NewMessage],
        delay_seconds: int = 0,
        *,
        timeout_seconds: float,
    ) -> Sent:
        told = tuple(messages)

        def send() -> Sent:
            ids = [self.database.send(queue, m.org or "", m.body, delay_seconds) for m in told]
            return Sent(tuple(ids))

        return await self._send(Call("send_messages", (queue, told)), timeout_seconds, send)

    async def send_batch(
        self, queue: str, bodies: Sequence[Any], delay_seconds: int = 0, *, timeout_seconds: float
    ) -> list[int]:
        told = tuple(bodies)

        def send() -> list[int]:
            return [self.database.send(queue, "(unresolved)", b, delay_seconds) for b in told]

        return await self._send(Call("send_batch", (queue, told)), timeout_seconds, send)

    async def once(self, queue: str, key: str, token: str, *, timeout_seconds: float) -> bool:
        def take() -> bool:
            return self.taken.setdefault((queue, key), token) == token

        return await self._send(Call("once", (queue, key, token)), timeout_seconds, take)

    async def archive(self, queue: str, msg_id: int, *, timeout_seconds: float) -> bool:
        call = Call("archive", (queue, msg_id))
        return await self._send(call, timeout_seconds, lambda: self.database.archive(queue, msg_id))

    async def aclose(self) -> None:
        return None

    async def _send(self, call: Call, timeout_seconds: float, act: Callable[[], T]) -> T:
        """Past the deadline the caller knows nothing, and the call may still take effect."""
        self.calls.append(call)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        if not self.cut:
            trip = self.travel(call)
            loop.call_later(trip.there_seconds, self._arrive, call, trip, act, answer)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await answer
        except TimeoutError:
            raise TransientError(f"{call.function}: no answer in time") from None

    def _arrive(
        self, call: Call, trip: Trip, act: Callable[[], T], answer: asyncio.Future[T]
    ) -> None:
        said: Any = None
        error: RpcError | None = trip.error
        if error is None:
            try:
                if call.function in self.missing:
                    raise FunctionMissing(f"no function {call.function}", code="PGRST202")
                with self._one_transaction:
                    said = act()
                if trip.answer is not None:
                    said = trip.answer(said)
            except RpcError as raised:
                error = raised
        if trip.lost:
            return
        loop = asyncio.get_running_loop()
        loop.call_later(trip.back_seconds, self._answer, answer, said, error)

    def _answer(self, answer: asyncio.Future[Any], said: Any, error: RpcError | None) -> None:
        if answer.done() or self.cut:
            return
        if error is None:
            answer.set_result(said)
        else:
            answer.set_exception(error)


def _no_such_arguments() -> Any:
    raise FunctionMissing("no function of that name takes pin_org", code="PGRST202")
