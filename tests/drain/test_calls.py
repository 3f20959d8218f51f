"""D30, D31: every call ends in time, and every strange answer has a type."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from typing import TYPE_CHECKING, Any

import pytest

from fairlease.drain.budget import RunBudget
from fairlease.errors import (
    CallRefused,
    FunctionMissing,
    RpcError,
    TransientError,
    Unauthorized,
    UnexpectedAnswer,
)
from fairlease.events import ClaimFailed, HandlerEnded
from fairlease.model import NewMessage
from fairlease.simulate.wire import Trip, Wire
from fairlease.transports.codec import (
    boolean_of,
    claim_of_object,
    claim_of_rows,
    error_of,
    heartbeat_of,
    sent_of,
)
from fairlease.transports.deadline import within

from .rig import Rig, virtual

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlease.model import Sent


@virtual
async def test_d30_the_deadline_of_a_call_is_within_the_lease_and_the_rest_of_the_isolate() -> None:
    rig = Rig(budget=RunBudget(isolate_end=100.0), knobs={"org_slot_lease_ttl_seconds": 45})
    setup = rig.drain().setup

    for at in (0.0, 60.0, 90.0, 98.0):
        await asyncio.sleep(at - rig.now())
        seconds = setup.call_seconds()
        assert 0 < seconds < 45 / 2
        assert seconds < 100.0 - rig.now()


@virtual
async def test_d30_a_server_that_never_answers_costs_one_deadline() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 200})
    ids = rig.send("a", 1.0)
    rig.script("claim", Trip(lost=True))

    await rig.run()

    # Its messages were hidden by a claim that nobody heard of; their timeout brings them back.
    assert rig.archived == set(ids)
    (failed,) = rig.said(ClaimFailed)
    assert failed.outcome_unknown
    second = [at for at, call in rig.sent_at if call.function == "settle_and_claim"][1]
    assert second < 20.0


@virtual
async def test_d30_on_expiry_the_call_is_abandoned_and_its_client_retired() -> None:
    retired: list[float] = []
    loop = asyncio.get_running_loop()

    async def stubborn() -> None:
        try:
            await asyncio.sleep(1000.0)
        except asyncio.CancelledError:
            await asyncio.sleep(500.0)

    with pytest.raises(TransientError) as expired:
        await within(5.0, stubborn(), "claim", lambda: retired.append(loop.time()))

    assert expired.value.took_effect is None
    assert retired == [5.0]
    assert loop.time() == 5.0
    await asyncio.sleep(600.0)


@virtual
async def test_d30_a_call_whose_caller_is_cancelled_takes_its_client_with_it() -> None:
    retired: list[bool] = []
    call = asyncio.create_task(
        within(50.0, asyncio.sleep(40.0), "claim", lambda: retired.append(True))
    )
    await asyncio.sleep(1.0)
    call.cancel()
    await asyncio.wait({call})

    assert call.cancelled()
    assert retired == [True]


@virtual
async def test_d30_a_cancelled_handler_does_not_cancel_the_call_that_was_made_for_it() -> None:
    rig = Rig()
    (msg_id,) = rig.send("a", 10.0)
    row = rig.database.queues["q"].rows[msg_id]
    row.read_ct = 1  # an earlier delivery began, and never ended
    rig.script("heartbeat_org_slot", Trip(), Trip(2.0, 2.0))
    drain = rig.drain()
    running = asyncio.create_task(drain.run())
    await asyncio.sleep(1.0)
    drain.cancel_handlers()
    await running

    # The call reached the database although its handler was told to end before it did.
    assert row.begun_read_ct == 2
    assert row.is_over
    assert rig.started == []


@pytest.mark.parametrize("function", ["send_messages", "once"])
def test_d30_what_a_handler_calls_goes_through_although_the_handler_is_cancelled(
    function: str,
) -> None:
    @virtual
    async def scenario() -> None:
        cancelled: list[str] = []
        rig = Rig()
        rig.wire = Watched(rig.database, rig.wire.travel, cancelled=cancelled)
        rig.always[function] = Trip(2.0, 2.0)
        _calling(rig, function)
        rig.send_to("calling")
        drain = rig.drain()
        running = asyncio.create_task(drain.run())
        await asyncio.sleep(1.0)
        drain.cancel_handlers()
        await running
        await asyncio.sleep(10.0)

        assert [call.function for call in rig.calls(function)] == [function]
        assert cancelled == []

    scenario()


@pytest.mark.parametrize("function", ["send_messages", "once"])
def test_d30_what_a_cancelled_handler_called_may_fail_without_a_traceback(function: str) -> None:
    said: list[str] = []

    @virtual
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: said.append(context["message"]))
        rig = Rig()
        rig.always[function] = Trip(2.0, 2.0, error=TransientError("busy"))
        _calling(rig, function)
        rig.send_to("calling")
        drain = rig.drain()
        running = asyncio.create_task(drain.run())
        await asyncio.sleep(1.0)
        drain.cancel_handlers()
        await running
        await asyncio.sleep(10.0)

    scenario()
    gc.collect()
    assert said == []


@pytest.mark.parametrize("function", ["send_messages", "once"])
def test_d30_what_a_handler_calls_has_the_deadline_of_every_call(function: str) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig(knobs={"org_slot_lease_ttl_seconds": 45})
        rig.script(function, *[Trip(lost=True)] * 3)
        _calling(rig, function)
        rig.send_to("calling")
        running = asyncio.create_task(rig.run())
        await asyncio.sleep(11.0)

        assert rig.said(HandlerEnded) or len(rig.calls(function)) > 1
        await running

    scenario()


class Watched(Wire):
    """Notes the calls that are cancelled instead of awaited."""

    def __init__(self, *arguments: Any, cancelled: list[str]) -> None:
        super().__init__(*arguments)
        self.cancelled = cancelled

    async def send_messages(self, *arguments: Any, **more: Any) -> Sent:
        with self._watched("send_messages"):
            return await super().send_messages(*arguments, **more)

    async def once(self, *arguments: Any, **more: Any) -> bool:
        with self._watched("once"):
            return await super().once(*arguments, **more)

    @contextlib.contextmanager
    def _watched(self, function: str) -> Iterator[None]:
        try:
            yield
        except asyncio.CancelledError:
            self.cancelled.append(function)
            raise


def _calling(rig: Rig, function: str) -> None:
    @rig.handler()
    async def calling(args: Any, ctx: Any) -> None:
        if function == "once":
            await ctx.once("key")
        else:
            await ctx.send([NewMessage({"method": "sleep", "args": {}}, "a")])


@pytest.mark.parametrize(
    ("code", "branch"),
    [
        (502, TransientError),
        ("503", TransientError),
        ("504", TransientError),
        (520, TransientError),
        ("522", TransientError),
        ("524", TransientError),
        ("500", TransientError),
        ("57014", TransientError),
        ("08006", TransientError),
        ("PGRST303", TransientError),
        (404, UnexpectedAnswer),
        (None, UnexpectedAnswer),
        ("PGRST202", FunctionMissing),
        ("PGRST203", FunctionMissing),
        ("42883", FunctionMissing),
        ("42725", FunctionMissing),
        ("P0001", CallRefused),
        ("42501", Unauthorized),
        (401, Unauthorized),
    ],
)
def test_d31_a_code_of_any_type_has_its_branch(code: object, branch: type[RpcError]) -> None:
    error = error_of(code, "<html>" + "x" * 5_000)

    assert type(error) is branch
    assert len(str(error)) <= 200


@pytest.mark.parametrize("body", ["<html>502</html>", "", None, 7, True, [1], ["<html>"]])
@pytest.mark.parametrize("read", [claim_of_rows, claim_of_object, heartbeat_of, sent_of])
def test_d31_a_success_with_a_strange_body_is_transient_and_never_a_crash(
    body: Any, read: Callable[[Any], Any]
) -> None:
    with pytest.raises(TransientError) as caught:
        read(body)
    assert caught.value.took_effect is None
    assert len(str(caught.value)) <= 200


@pytest.mark.parametrize("body", ["<html>502</html>", None, 1, "true"])
def test_d31_only_a_boolean_answers_a_question_of_yes_or_no(body: Any) -> None:
    with pytest.raises(TransientError):
        boolean_of("renew_org_slot", body)
