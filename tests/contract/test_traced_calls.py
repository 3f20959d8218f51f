"""The port with spans answers as the port does, and each call has its span."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract.test_rpc import SOON, claim, request, settle
from fairlease.errors import CallRefused
from fairlease.model import Done, NewMessage
from fairlease.telemetry.span_calls import TracedCalls
from unit.telemetry.spans import Kept, kept

if TYPE_CHECKING:
    from fairlease.rpc import Rpc


@pytest.fixture
def made() -> Kept:
    return kept(verbose=True)


async def test_every_call_is_answered_and_told(rpc: Rpc, queue: str, made: Kept) -> None:
    traced = TracedCalls(rpc, made.spans, "run")
    sent = await traced.send_messages(queue, [NewMessage({"n": 1}, "a")], timeout_seconds=SOON)
    more = await traced.send_batch(queue, [{"n": 2, "org": "a"}], timeout_seconds=SOON)
    answer = await claim(traced, request(queue, n=2))
    assert {message.msg_id for message in answer.messages} == {*sent.ids, *more}
    first, second = (message.delivery for message in answer.messages)
    beat = await traced.heartbeat_org_slot(queue, "h/1", 60, 60, [first], timeout_seconds=SOON)
    assert beat.extended == {first.msg_id}
    assert await traced.renew_org_slot(queue, "h/1", 60, timeout_seconds=SOON)
    settled = await settle(traced, request(queue, n=0), Done(first))
    assert settled.settled[0].result == "applied"
    assert await traced.archive(queue, second.msg_id, timeout_seconds=SOON)
    assert await traced.release_org_slot(queue, "h/1", timeout_seconds=SOON)
    names = [span.name for span in made.ended]
    assert names == ["enqueue", "enqueue", "claim", "renew", "renew", "settle", "settle", "release"]
    [claimed] = made.named("claim")
    assert (claimed.attributes["fairlease.status"], claimed.attributes["fairlease.org"]) == (
        "claimed",
        "a",
    )
    assert made.named("settle")[0].attributes["fairlease.msg_ids"] == (str(first.msg_id),)


async def test_a_call_that_fails_is_an_error_with_its_code_and_without_its_text(
    rpc: Rpc, made: Kept
) -> None:
    with pytest.raises(CallRefused):
        await claim(TracedCalls(rpc, made.spans, "run"), request("nowhere"))
    [span] = made.ended
    assert (span.status.is_ok, span.attributes["fairlease.code"]) == (False, "P0001")
    assert "attach it" not in span.to_json()
