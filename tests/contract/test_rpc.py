from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from fairlease.errors import CallRefused, FunctionMissing, TransientError
from fairlease.model import (
    ClaimRequest,
    ClaimStatus,
    DeadLetter,
    Delivery,
    Done,
    GiveBack,
    Limit,
    NewMessage,
    Outcome,
    RetryLater,
    SettleResult,
    SnoozeUntil,
)

if TYPE_CHECKING:
    import psycopg

    from fairlease.model import ClaimAnswer
    from fairlease.rpc import Rpc

SOON = 10.0


def request(
    queue: str, n: int = 10, *, holder: str = "h/1", pin: str | None = None
) -> ClaimRequest:
    return ClaimRequest(queue, holder, n, 60, 60, 2, 8, pin)


async def send(rpc: Rpc, queue: str, *messages: NewMessage) -> tuple[int, ...]:
    return (await rpc.send_messages(queue, messages, timeout_seconds=SOON)).ids


async def claim(rpc: Rpc, asked: ClaimRequest) -> ClaimAnswer:
    return await rpc.claim_org_slot_and_read(asked, timeout_seconds=SOON)


async def settle(rpc: Rpc, asked: ClaimRequest, *outcomes: Outcome) -> ClaimAnswer:
    return await rpc.settle_and_claim(asked, outcomes, timeout_seconds=SOON)


async def test_a_message_travels_from_send_to_done(rpc: Rpc, queue: str) -> None:
    (msg_id,) = await send(rpc, queue, NewMessage({"method": "m", "args": {"x": 1}}, org="Acme"))
    answer = await claim(rpc, request(queue))
    assert (answer.status, answer.org) == (ClaimStatus.CLAIMED, "acme")
    (message,) = answer.messages
    assert (message.msg_id, message.read_ct) == (msg_id, 1)
    assert message.body == {"method": "m", "args": {"x": 1}}
    assert message.enqueued_at is not None
    done = await settle(rpc, request(queue, 0), Done(message.delivery, took_ms=5))
    assert [item.result for item in done.settled] == [SettleResult.APPLIED]
    assert (await claim(rpc, request(queue))).status is ClaimStatus.NO_DEMAND


@pytest.mark.parametrize(
    "body", [None, "text", [], 42, {"id": 2**63, "big": 10**40}, {"t": "\U0001f600 שלום \u0001"}]
)
async def test_every_json_value_arrives_as_it_was_sent(rpc: Rpc, queue: str, body: Any) -> None:
    await send(rpc, queue, NewMessage(body))
    (message,) = (await settle(rpc, request(queue))).messages
    assert message.body == body


@pytest.mark.parametrize("org", ["a/b", "a'b\"c", "a%2fb&c=d,{e}", "שלום\u200f", " ", "x" * 150])
async def test_hard_org_names_are_the_same_in_claim_and_pin(rpc: Rpc, queue: str, org: str) -> None:
    await send(rpc, queue, *(NewMessage({}, org=org) for _ in range(2)))
    first = await settle(rpc, request(queue, 1))
    assert first.org == org
    second = await settle(rpc, request(queue, 1, pin=org))
    assert (second.status, second.org, len(second.messages)) == (ClaimStatus.CLAIMED, org, 1)


async def test_each_outcome_is_applied_once_and_then_already(rpc: Rpc, queue: str) -> None:
    await send(rpc, queue, *(NewMessage({"n": n}, org="a") for n in range(5)))
    messages = (await settle(rpc, request(queue))).messages
    made = [
        Done(messages[0].delivery),
        RetryLater(messages[1].delivery, after_ms=60_000, error="e"),
        SnoozeUntil(messages[2].delivery, after_ms=60_000),
        GiveBack(messages[3].delivery),
        DeadLetter(messages[4].delivery, reason="r", error="e"),
    ]
    first = await settle(rpc, request(queue, 0), *made)
    assert [item.result for item in first.settled] == ["applied"] * 5
    again = await settle(rpc, request(queue, 0), *made)
    assert [item.result for item in again.settled] == ["gone"] + ["already"] * 3 + ["gone"]
    (back,) = (await settle(rpc, request(queue))).messages
    assert (back.msg_id, back.read_ct, back.attempt) == (messages[3].msg_id, 2, 1)


async def test_a_stale_delivery_is_lost(rpc: Rpc, queue: str) -> None:
    await send(rpc, queue, NewMessage({}, org="a"))
    (stale,) = (await settle(rpc, request(queue))).messages
    await settle(rpc, request(queue, 0), GiveBack(stale.delivery))
    (again,) = (await settle(rpc, request(queue))).messages
    answer = await settle(rpc, request(queue, 0), Done(stale.delivery), Done(again.delivery))
    assert [item.result for item in answer.settled] == [SettleResult.LOST, SettleResult.APPLIED]


async def test_a_limit_opens_the_circuit_of_the_org(rpc: Rpc, queue: str) -> None:
    await send(rpc, queue, NewMessage({}, org="a"), NewMessage({}, org="a"))
    (message,) = (await settle(rpc, request(queue, 1))).messages
    limited = SnoozeUntil(message.delivery, after_ms=1, limit=Limit(60.0, "429"))
    await settle(rpc, request(queue, 0), limited)
    answer = await settle(rpc, request(queue))
    assert (answer.status, answer.cause) == (ClaimStatus.ORG_CAPACITY, "circuit")
    assert answer.retry_after_ms is not None
    assert 50_000 < answer.retry_after_ms <= 60_000


async def test_heartbeat_renew_and_release_speak_of_the_holder(rpc: Rpc, queue: str) -> None:
    await send(rpc, queue, NewMessage({}, org="a"))
    (message,) = (await settle(rpc, request(queue))).messages
    deliveries = [message.delivery, Delivery(message.msg_id, 9), Delivery(10**6, 1)]
    beat = await rpc.heartbeat_org_slot(queue, "h/1", 60, 60, deliveries, timeout_seconds=SOON)
    assert beat.slot_alive
    assert beat.extended == {message.msg_id}
    assert beat.gone == {10**6}
    assert await rpc.renew_org_slot(queue, "h/1", 60, timeout_seconds=SOON)
    assert not await rpc.renew_org_slot(queue, "h/2", 60, timeout_seconds=SOON)
    assert await rpc.release_org_slot(queue, "h/1", timeout_seconds=SOON)
    assert not await rpc.release_org_slot(queue, "h/1", timeout_seconds=SOON)
    after = await rpc.heartbeat_org_slot(queue, "h/1", 60, 60, [], timeout_seconds=SOON)
    assert not after.slot_alive


async def test_archive_and_send_batch_work_without_our_functions(rpc: Rpc, queue: str) -> None:
    first, second = await rpc.send_batch(queue, [{"a": 1}, None], timeout_seconds=SOON)
    assert await rpc.archive(queue, first, timeout_seconds=SOON)
    assert not await rpc.archive(queue, first, timeout_seconds=SOON)
    assert second > first


async def test_an_unattached_queue_is_refused_by_name(rpc: Rpc) -> None:
    with pytest.raises(CallRefused, match="nowhere"):
        await claim(rpc, request("nowhere"))


@pytest.mark.parametrize(("change", "named"), [({"n": 0}, "n"), ({"holder": ""}, "holder")])
async def test_a_bad_argument_is_refused_by_name(
    rpc: Rpc, queue: str, change: dict[str, Any], named: str
) -> None:
    with pytest.raises(CallRefused, match=named):
        await claim(rpc, replace(request(queue), **change))


async def test_a_function_that_the_database_lacks_is_missing(
    rpc: Rpc, queue: str, connection: psycopg.Connection
) -> None:
    await claim(rpc, request(queue))
    connection.execute("drop function pgmq_public.settle_and_claim")
    connection.execute("notify pgrst, 'reload schema'")
    with pytest.raises(FunctionMissing):
        await settle(rpc, request(queue))


async def test_a_call_that_outlives_its_deadline_is_unknown_and_the_next_one_works(
    rpc: Rpc, queue: str, connection: psycopg.Connection
) -> None:
    await send(rpc, queue, NewMessage({}, org="a"))
    (message,) = (await settle(rpc, request(queue))).messages
    with connection.transaction():
        connection.execute(f"select from pgmq.q_{queue} for update")
        with pytest.raises(TransientError) as raised:
            await rpc.settle_and_claim(
                request(queue, 0), [Done(message.delivery)], timeout_seconds=0.3
            )
    assert raised.value.took_effect is None
    again = await settle(rpc, request(queue, 0), Done(message.delivery))
    assert again.settled[0].result in {SettleResult.APPLIED, SettleResult.GONE}
