"""A body that Python cannot read, put on the queue by whoever may: dead by name, alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fairlease import Dead
from fairlease.errors import UnexpectedAnswer
from fairlease.messages.envelope import open_envelope
from fairlease.model import ClaimRequest, NewMessage
from fairlease.transports.reading import TOO_DEEP

if TYPE_CHECKING:
    import psycopg

    from fairlease.model import ClaimAnswer
    from fairlease.rpc import Rpc


async def claim(rpc: Rpc, queue: str, how: str) -> ClaimAnswer:
    asked = ClaimRequest(queue, "h/1", 10, 0, 60, 2, 8)
    if how == "plain":
        return await rpc.claim_org_slot_and_read(asked, timeout_seconds=10)
    return await rpc.settle_and_claim(asked, [], timeout_seconds=10)


@pytest.mark.parametrize("how", ["plain", "settle"])
@pytest.mark.parametrize(
    "body",
    ["[" * 10_000 + "]" * 10_000, '{"method": "m", "args": ' + '{"a":[' * 900 + "]}" * 900 + "}"],
)
async def test_a_body_nested_too_deeply_is_dead_by_name_and_its_neighbours_are_read(
    rpc: Rpc, queue: str, connection: psycopg.Connection, how: str, body: str
) -> None:
    before = '{"n": 1, "t": "[[\\"{"}'
    for text in (before, body, '{"n": 2}'):
        connection.execute("select pgmq.send(%s, %s::jsonb)", [queue, text])
    first, deep, last = (await claim(rpc, queue, how)).messages
    assert (first.body, last.body) == ({"n": 1, "t": '[["{'}, {"n": 2})
    assert deep.body is TOO_DEEP
    with pytest.raises(Dead) as dead:
        open_envelope(deep.body, {})
    assert dead.value.reason.startswith("nested deeper than 400 levels")


@pytest.mark.parametrize("how", ["plain", "settle"])
async def test_numbers_of_any_size_are_read_to_the_last_digit(
    rpc: Rpc, queue: str, connection: psycopg.Connection, how: str
) -> None:
    text = '{"a": 9223372036854775808, "b": 1e400, "c": -1e5000, "d": 0.5}'
    connection.execute("select pgmq.send(%s, %s::jsonb)", [queue, text])
    (message,) = (await claim(rpc, queue, how)).messages
    assert message.body == {"a": 2**63, "b": 10**400, "c": -(10**5000), "d": 0.5}


@pytest.mark.parametrize("body", ["\ud800", object(), {"a": {1, 2}}])
async def test_arguments_that_cannot_be_sent_are_an_error_of_the_call_and_no_lost_answer(
    rpc: Rpc, queue: str, connection: psycopg.Connection, body: object
) -> None:
    with pytest.raises(UnexpectedAnswer):
        await rpc.send_messages(queue, [NewMessage({"a": body})], timeout_seconds=10)
    assert await rpc.send_batch(queue, [{}], timeout_seconds=10) == [1]


@pytest.mark.parametrize("how", ["plain", "settle"])
async def test_an_instant_beyond_pythons_is_none_and_its_neighbour_has_its_own(
    rpc: Rpc, queue: str, connection: psycopg.Connection, how: str
) -> None:
    for _ in range(4):
        connection.execute("select pgmq.send(%s, '{}'::jsonb)", [queue])
    for msg_id, at in enumerate(("infinity", "20000-01-01", "0044-03-15 BC"), 1):
        connection.execute(
            f"update pgmq.q_{queue} set enqueued_at = %s where msg_id = %s", [at, msg_id]
        )
    messages = (await claim(rpc, queue, how)).messages
    assert [message.enqueued_at for message in messages[:3]] == [None, None, None]
    assert messages[3].enqueued_at is not None
    assert messages[3].enqueued_at.tzinfo is not None
