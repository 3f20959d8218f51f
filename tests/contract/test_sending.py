"""Sending many: one round trip, one transaction, refused before the wire or not at all."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from fairlease.errors import CallRefused, InvalidInput
from fairlease.messages.sending import send
from fairlease.model import NewMessage

if TYPE_CHECKING:
    import psycopg

    from fairlease.rpc import Rpc


def count(connection: psycopg.Connection, queue: str) -> int:
    row = connection.execute(f"select count(*) from pgmq.q_{queue}").fetchone()
    assert row is not None
    return row[0]


async def test_ten_thousand_are_one_call_and_one_transaction(
    rpc: Rpc, queue: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    once = type(rpc).send_messages

    async def counted(*args: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        return await once(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(type(rpc), "send_messages", counted)
    began = time.monotonic()
    sent = await send(rpc, queue, [NewMessage({"n": n}, org=f"o{n % 40}") for n in range(10_000)])
    assert time.monotonic() - began < 10
    assert (calls, len(set(sent.ids))) == (1, 10_000)
    rows = connection.execute(
        f"select count(*), count(distinct xmin::text), min((message->>'n')::int - msg_id), "
        f"max((message->>'n')::int - msg_id) from pgmq.q_{queue}"
    ).fetchone()
    assert rows == (10_000, 1, -1, -1)


async def test_one_bad_message_sends_none_of_them(
    rpc: Rpc, queue: str, connection: psycopg.Connection
) -> None:
    good = [NewMessage({"n": n}) for n in range(9)]
    with pytest.raises(InvalidInput, match=r"^message 9: \$\.a: contains a lone surrogate"):
        await send(rpc, queue, [*good, NewMessage({"a": "\ud800"})])
    with pytest.raises(CallRefused, match=r"messages\[9\]: queue .* does not keep keys unique"):
        await send(rpc, queue, [*good, NewMessage({}, key="k")])
    assert count(connection, queue) == 0
