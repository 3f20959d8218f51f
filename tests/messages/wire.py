"""The way of one process to the real database: late, lost, twice, or cut by its own death."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlease.errors import RpcError, TransientError, UnexpectedAnswer
from fairlease.model import ClaimAnswer
from fairlease.simulate.wire import Call, Trip, Wire

from .plan import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fairlease.model import NewMessage, Sent

# Of a round trip, in seconds.
HALF = 0.01


def _there_and_back(_seconds: float) -> Trip:
    return Trip(HALF, HALF)


def _raises(error: RpcError) -> Callable[[Any], Any]:
    def answer(_said: Any) -> Any:
        raise error

    return answer


TRIPS: dict[str, Callable[[float], Trip]] = {
    "refused": lambda _: Trip(HALF, HALF, error=TransientError("busy", took_effect=False)),
    "lost_before": lambda _: Trip(HALF, HALF, error=TransientError("bad gateway")),
    "lost_after": lambda _: Trip(HALF, HALF, answer=_raises(TransientError("bad gateway"))),
    "unexpected": lambda _: Trip(HALF, HALF, answer=_raises(UnexpectedAnswer("what is this?"))),
    "no_answer": lambda _: Trip(HALF, lost=True),
    "slow_answer": lambda seconds: Trip(HALF, seconds),
    "late": lambda seconds: Trip(seconds, HALF),
    "die_before": lambda _: Trip(lost=True, error=TransientError("never sent")),
    "die_underway": lambda seconds: Trip(seconds, lost=True),
}


class Weather:
    """The faults of a plan, dealt to the calls of each kind in the order in which they are made."""

    def __init__(self, faults: Mapping[str, Sequence[Fault]]) -> None:
        self._dealt: dict[str, Iterator[Fault]] = {
            kind: iter(each) for kind, each in faults.items()
        }

    def next(self, call: Call) -> Fault | None:
        return next(self._dealt.get(kind_of(call), iter(())), None)


def kind_of(call: Call) -> str:
    if call.function == "settle_and_claim":
        request, outcomes = call.arguments
        if not outcomes:
            return "claim"
        return "settle_and_claim" if request.n else "settle"
    shorter = {
        "claim_org_slot_and_read": "claim",
        "heartbeat_org_slot": "heartbeat",
        "release_org_slot": "release",
        "send_messages": "send",
    }
    return shorter.get(call.function, call.function)


@dataclass
class FaultyWire(Wire):
    """`die` ends the process whose wire this is; `received` counts what its claims brought it."""

    weather: Weather = field(default_factory=lambda: Weather({}))
    die: Callable[[], None] = lambda: None
    received: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.travel = self._befall
        self._again_after: dict[int, float] = {}

    async def send_messages(
        self,
        queue: str,
        messages: Sequence[NewMessage],
        delay_seconds: int = 0,
        *,
        timeout_seconds: float,
    ) -> Sent:
        told = tuple(messages)
        return await self._send(
            Call("send_messages", (queue, told)),
            timeout_seconds,
            lambda: self.database.send_messages(queue, told, delay_seconds),
        )

    async def once(self, queue: str, key: str, token: str, *, timeout_seconds: float) -> bool:
        return await self._send(
            Call("once", (queue, key, token)),
            timeout_seconds,
            lambda: self.database.once(queue, key, token),
        )

    def _arrive(
        self, call: Call, trip: Trip, act: Callable[[], Any], answer: asyncio.Future[Any]
    ) -> None:
        Wire._arrive(self, call, trip, act, answer)
        again_after = self._again_after.pop(id(call), None)
        if again_after is not None:
            asyncio.get_running_loop().call_later(again_after, _unheard, act)

    def _answer(self, answer: asyncio.Future[Any], said: Any, error: RpcError | None) -> None:
        if isinstance(said, ClaimAnswer) and error is None and not (answer.done() or self.cut):
            self.received.update(message.msg_id for message in said.messages)
        Wire._answer(self, answer, said, error)

    def _befall(self, call: Call) -> Trip:
        fault = self.weather.next(call) or Fault("none")
        if fault.what.startswith("twice"):
            self._again_after[id(call)] = fault.seconds if fault.what == "twice_late" else 0.0
        elif fault.what == "die_after":
            return Trip(HALF, lost=True, answer=lambda _said: self.die())
        elif fault.what.startswith("die"):
            self.die()
        return TRIPS.get(fault.what, _there_and_back)(fault.seconds)


def _unheard(act: Callable[[], Any]) -> None:
    """A second copy of a call: it takes effect, and nobody waits for its answer."""
    try:
        act()
    except RpcError:
        return
