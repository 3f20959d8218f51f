"""One message between its claim and its settle: dead at once, suspect, limited, or run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from fairlease.errors import TransientError
from fairlease.events import DeliveryLost
from fairlease.messages.verdicts import Dead, RateLimited, Retry, Snooze
from fairlease.model import Heartbeat
from fairlease.simulate.wire import Trip

from .rig import Rig, fails, virtual


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (None, "not an object"),
        ("text", "not an object"),
        ([1], "not an object"),
        (7, "not an object"),
        ({}, "no method"),
        ({"method": 7}, "no method"),
        ({"method": "nobody"}, "unknown method 'nobody'"),
        ({"method": "sleep", "args": {"seconds": "soon"}}, "args of 'sleep' are not valid"),
    ],
)
def test_what_no_retry_can_help_is_dead_at_once_and_its_neighbours_run(
    body: Any, reason: str
) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig()
        before = rig.send("a", 1.0)
        bad = rig.database.send("q", "a", body)
        after = rig.send("a", 1.0)

        await rig.run()

        assert rig.archived == {*before, *after}
        assert reason in rig.database.queues["q"].dead[bad][1]
        assert rig.now() < 2.0

    scenario()


@virtual
async def test_a_message_that_keeps_killing_its_isolate_is_dead_before_its_handler_runs() -> None:
    rig = Rig(knobs={"max_crashes": 3})
    tolerated, poison = rig.send("a", 1.0, count=2)
    rows = rig.database.queues["q"].rows
    rows[tolerated].read_ct, rows[tolerated].begun_count = 4, 3
    rows[poison].read_ct, rows[poison].begun_count = 5, 4

    await rig.run()

    assert rig.archived == {tolerated}
    assert rig.database.queues["q"].dead[poison][1].startswith("crashed")
    assert [msg_id for _, _, msg_id in rig.started] == [tolerated]


@virtual
async def test_a_suspect_delivery_is_recorded_before_its_handler_starts() -> None:
    rig = Rig()
    (msg_id,) = rig.send("a", 5.0)
    rig.database.queues["q"].rows[msg_id].read_ct = 1
    rig.script("heartbeat_org_slot", Trip(), Trip(3.0, 3.0))

    await rig.run()

    recorded = [call.arguments[-1] for call in rig.calls("heartbeat_org_slot")][1]
    assert [(d.msg_id, d.read_ct) for d in recorded] == [(msg_id, 2)]
    assert rig.started[0][0] > 6.0
    assert msg_id in rig.archived


@virtual
async def test_a_suspect_delivery_that_cannot_be_recorded_is_looked_at_again_later() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 50, "poll_idle_seconds": 2})
    (msg_id,) = rig.send("a", 1.0)
    row = rig.database.queues["q"].rows[msg_id]
    row.read_ct = 1
    rig.script("heartbeat_org_slot", Trip(), fails(TransientError("busy")))

    await rig.run()

    assert rig.started[0][0] > 5.0
    # No attempt is counted for a handler that never started.
    assert row.uncounted == 1
    assert msg_id in rig.archived


@pytest.mark.parametrize("word", ["lost", "gone"])
def test_a_suspect_delivery_that_is_ours_no_more_never_starts_and_nothing_is_said_of_it(
    word: str,
) -> None:
    @virtual
    async def scenario() -> None:
        rig = Rig()
        (msg_id,) = rig.send("a", 1.0)
        rig.database.queues["q"].rows[msg_id].read_ct = 1
        said = Heartbeat(slot_alive=True, **{word: frozenset({msg_id})})
        rig.script("heartbeat_org_slot", Trip(), Trip(answer=lambda _said: said))

        await rig.run()

        assert rig.started == []
        assert [event.msg_id for event in rig.said(DeliveryLost)] == [msg_id]
        assert not [c for c in rig.calls("settle_and_claim") if c.arguments[1]]

    scenario()


@virtual
async def test_a_delivery_that_follows_a_counted_retry_is_not_suspect() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 50, "poll_idle_seconds": 1})

    @rig.handler(retry=Retry(base=1.0, cap=1.0))
    async def twice(args: Any, ctx: Any) -> None:
        attempts.append(ctx.attempt)
        if ctx.attempt == 1:
            raise ValueError

    attempts: list[int] = []
    rig.send_to("twice")
    await rig.run()

    assert attempts == [1, 2]
    begins = [c for c in rig.calls("heartbeat_org_slot") if c.arguments[-1]]
    assert begins == []


@virtual
async def test_a_rate_limit_opens_the_circuit_of_its_org_and_snoozes_the_message() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 200, "poll_idle_seconds": 1, "poll_max_seconds": 5})

    @rig.handler()
    async def limited(args: Any, ctx: Any) -> None:
        if ctx.attempt == 1 and not calls:
            calls.append(rig.now())
            raise RateLimited(30.0)
        calls.append(rig.now())

    calls: list[float] = []
    rig.send_to("limited", "slow")
    rig.send("slow", 1.0, delay=2.0)
    other = rig.send("free", 1.0, delay=2.0)
    await rig.run()

    assert min(at for at, org, _ in rig.started if org == "free") < 10.0
    assert min(at for at, org, _ in rig.started if org == "slow") > 30.0
    assert calls[1] >= 30.0
    assert set(other) <= rig.archived


@virtual
async def test_a_handlers_verdict_decides_and_is_settled_with_its_time() -> None:
    rig = Rig()
    verdicts = {
        "snoozed": Snooze(timedelta(seconds=90)),
        "retried": Retry(after=45.0),
        "hopeless": Dead("no such repository"),
    }
    for name, verdict in verdicts.items():
        _register(rig, name, verdict)
        rig.send_to(name)
    await rig.run()

    told = [o for call in rig.calls("settle_and_claim") for o in call.arguments[1]]
    assert {type(o).__name__: getattr(o, "after_ms", None) for o in told} == {
        "SnoozeUntil": 90_000,
        "RetryLater": 45_000,
        "DeadLetter": None,
    }
    assert {outcome.took_ms for outcome in told} == {2000}


def _register(rig: Rig, name: str, verdict: Exception) -> None:
    async def handler(args: Any, ctx: Any) -> None:
        await rig.clock.sleep(2.0)
        raise verdict

    handler.__name__ = name
    rig.handler()(handler)


@virtual
async def test_a_handler_sees_its_message_and_how_much_time_is_left() -> None:
    rig = Rig()
    seen: list[Any] = []

    @rig.handler(timeout=60.0)
    async def look(args: Any, ctx: Any) -> None:
        await rig.clock.sleep(10.0)
        seen.extend([ctx.org, ctx.queue, ctx.method, ctx.msg_id, ctx.attempt, ctx.cancelled])
        seen.append(round(ctx.seconds_left()))

    msg_id = rig.send_to("look", "acme")
    await rig.run()

    assert seen == ["acme", "q", "look", msg_id, 1, False, 50]
