"""D27: whatever a reporter, a hook or a handler raises, the run goes on and nothing leaks."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest

from fairlease.errors import RpcError
from fairlease.events import HandlerEnded, LeaseLost, RunFailed
from fairlease.simulate.wire import Call, Wire

from .rig import Rig, virtual

if TYPE_CHECKING:
    from fairlease.model import ClaimAnswer, Heartbeat


class Odd(BaseException):
    pass


@pytest.mark.parametrize(
    "error", [ValueError("no"), SystemExit(1), asyncio.CancelledError(), Odd(), StopIteration()]
)
def test_d27_a_reporter_that_raises_anything_ends_nothing(error: BaseException) -> None:
    @virtual
    async def scenario() -> None:
        unhandled = watch_the_loop()
        rig = Rig(more={"observe": _raiser(error)})
        ids = rig.send("a", 30.0, count=9)

        report = await rig.run()

        assert (report.reason, rig.archived) == ("idle", set(ids))
        assert unhandled == []

    scenario()


@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad\x00\ud800"),
        Odd(),
        KeyboardInterrupt(),
        SystemExit(3),
        asyncio.CancelledError(),
        StopIteration(),
        StopAsyncIteration(),
        GeneratorExit(),
        RecursionError(),
        MemoryError(),
    ],
)
def test_d27_a_handler_that_raises_anything_has_its_message_retried(error: BaseException) -> None:
    @virtual
    async def scenario() -> None:
        unhandled = watch_the_loop()
        rig = Rig()

        @rig.handler()
        async def fail(args: Any, ctx: Any) -> None:
            raise error

        msg_id = rig.send_to("fail")
        (good,) = rig.send("a", 1.0)
        report = await rig.run()

        outcomes = {event.msg_id: event.outcome for event in rig.said(HandlerEnded)}
        assert outcomes == {msg_id: "RetryLater", good: "Done"}
        assert report.reason == "idle"
        assert unhandled == []

    scenario()


class Unreliable(Wire):
    """A client that raises what the port does not allow, in its second and third renewal."""

    async def heartbeat_org_slot(self, *arguments: Any, **more: Any) -> Heartbeat:
        answer = await super().heartbeat_org_slot(*arguments, **more)
        renewals = sum(call.function == "heartbeat_org_slot" for call in self.calls)
        if renewals in (2, 3):
            raise KeyError("slot_alive")
        return answer


@virtual
async def test_d27_a_renewal_survives_a_client_that_raises_what_it_must_not() -> None:
    unhandled = watch_the_loop()
    rig = Rig()
    rig.wire = Unreliable(rig.database)
    rig.send("a", 200.0)

    await rig.run()

    assert {row.read_ct for row in rig.database.queues["q"].archive.values()} == {1}
    assert unhandled == []


@virtual
async def test_d27_a_delivery_whose_beginning_meets_a_fault_of_the_client_ends_all_the_same() -> (
    None
):
    unhandled = watch_the_loop()
    rig = Rig(knobs={"idle_budget_seconds": 200})
    rig.wire = Unreliable(rig.database)
    (msg_id,) = rig.send("a", 1.0)
    # An earlier delivery began and never ended, so the second renewal records this one.
    rig.database.queues["q"].rows[msg_id].read_ct = 1

    await rig.run()

    assert rig.archived == {msg_id}
    assert [at < 60.0 for at, _, _ in rig.ended] == [True]
    gc.collect()
    assert unhandled == []


@virtual
async def test_a_fault_of_the_engine_itself_lets_work_end_and_settles_it_before_it_is_raised() -> (
    None
):
    rig = Rig()
    rig.send("a", 10.0)
    rig.send("a", 50.0)
    drain = rig.drain()
    claim = drain.claiming.claim

    async def faulty(*arguments: Any, **more: Any) -> Any:
        if rig.ended:
            raise ZeroDivisionError
        return await claim(*arguments, **more)

    drain.claiming = _Faulty(drain.claiming, faulty)  # type: ignore[assignment]
    with pytest.raises(ZeroDivisionError):
        await drain.run()

    assert [event.error for event in rig.said(RunFailed)] == ["ZeroDivisionError"]
    assert len(rig.archived) == 2
    assert rig.held == []


class Faulty(Wire):
    """A client that raises what the port does not allow, in its second claim."""

    async def settle_and_claim(self, *arguments: Any, **more: Any) -> ClaimAnswer:
        if sum(call.function == "settle_and_claim" for call in self.calls) == 1:
            self.calls.append(Call("settle_and_claim", ()))
            raise KeyError("status")
        return await super().settle_and_claim(*arguments, **more)


@virtual
async def test_d17_a_run_that_fails_releases_its_slot_and_keeps_it_until_its_work_is_settled() -> (
    None
):
    rig = Rig(more={"cancel_on_lost_lease": True})
    rig.wire = Faulty(rig.database)
    rig.send("a", 10.0)
    rig.send("a", 200.0)

    with pytest.raises(KeyError):
        await rig.run()

    # A claim that ended in no answer is over: what is renewed from then on is believed.
    assert rig.said(LeaseLost) == []
    assert len(rig.archived) == 2
    assert rig.held == []


class _Faulty:
    """A part of the run with one method replaced."""

    def __init__(self, part: Any, claim: Any) -> None:
        self._part, self.claim = part, claim

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)


def _raiser(error: BaseException) -> Any:
    def observe(_event: object) -> None:
        raise error

    return observe


def watch_the_loop() -> list[dict[str, Any]]:
    """Whatever asyncio would only log: exceptions that nobody retrieved, callbacks that raised."""
    unhandled: list[dict[str, Any]] = []
    gc.collect()
    asyncio.get_running_loop().set_exception_handler(lambda _l, context: unhandled.append(context))
    return unhandled


def test_rpc_errors_carry_no_more_of_a_body_than_a_log_may_show() -> None:
    assert len(str(RpcError("x" * 10_000))) == 200
