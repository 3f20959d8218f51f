"""The simulated database answers as the SQL does: each sentence of the contract that it plays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairlease.errors import CallRefused
from fairlease.model import (
    ClaimRequest,
    ClaimStatus,
    DeadLetter,
    Delivery,
    Done,
    GiveBack,
    Limit,
    RetryLater,
    SettleResult,
    SnoozeUntil,
)
from fairlease.simulate.database import Database


class Scene:
    def __init__(self, *queues: str) -> None:
        self.seconds = 0.0
        self.database = Database(lambda: self.seconds)
        self.database.attach(*(queues or ("q",)))

    def claim(self, holder: str = "h", pin: str | None = None, **more: Any) -> Any:
        request = ClaimRequest("q", holder, 4, 120, 60, 1, 8, pin)
        return self.database.claim(replace(request, **more))

    def settle(self, *outcomes: Any) -> list[str]:
        request = ClaimRequest("q", "h", 0, 120, 60, 1, 8)
        return [s.result.value for s in self.database.settle_and_claim(request, outcomes).settled]

    def send(self, org: str = "a", count: int = 1, delay: float = 0.0) -> list[int]:
        return [self.database.send("q", org, {}, delay) for _ in range(count)]


def test_a_claim_reads_up_to_n_of_one_org_and_hides_them() -> None:
    scene = Scene()
    ids = scene.send(count=6)

    answer = scene.claim()

    assert (answer.status, answer.org) == (ClaimStatus.CLAIMED, "a")
    assert [m.msg_id for m in answer.messages] == ids[:4]
    assert {m.read_ct for m in answer.messages} == {1}
    assert [m.msg_id for m in scene.claim(pin="a").messages] == ids[4:]
    assert scene.claim(pin="a").status is ClaimStatus.NO_DEMAND
    scene.seconds = 120.0
    assert [m.read_ct for m in scene.claim(pin="a").messages] == [2] * 4


def test_breadth_before_depth_then_round_robin_after_the_cursor() -> None:
    scene = Scene()
    for org in "abc":
        scene.send(org, 20)

    claimed = [scene.claim(f"h{k}", max_per_org=2).org for k in range(6)]

    assert claimed == ["a", "b", "c", "a", "b", "c"]
    # One holder alone goes round as well, and never back to the top of the alphabet.
    alone = Scene()
    for org in "abc":
        alone.send(org, 20)
    assert [alone.claim().org for _ in range(5)] == ["a", "b", "c", "a", "b"]


def test_the_caps_and_their_causes() -> None:
    scene = Scene()
    scene.send("a", 20)

    assert scene.claim(global_cap=0).cause == "stopped"
    assert scene.claim(max_per_org=-1).cause == "stopped"
    scene.claim("first")
    assert scene.claim("second").cause == "org_limit"
    scene.send("b", 1)
    full = scene.claim("second", global_cap=1)
    assert (full.status, full.cause) == (ClaimStatus.NO_CAPACITY, "fleet_full")
    # With nothing visible, no_demand wins over full caps.
    assert scene.claim("second", pin="z", global_cap=1).status is ClaimStatus.NO_DEMAND


def test_a_limit_of_the_org_replaces_the_argument() -> None:
    scene = Scene()
    scene.send("a", 20)
    scene.database.slots.state_of("a").max_per_org = 2

    statuses = [scene.claim(f"h{k}").status for k in range(3)]

    assert statuses == [ClaimStatus.CLAIMED, ClaimStatus.CLAIMED, ClaimStatus.ORG_CAPACITY]


def test_caps_of_an_org_hold_over_all_queues() -> None:
    scene = Scene("q", "other")
    scene.send("a", 5)
    scene.database.send("other", "a", {})
    scene.claim("first")

    assert scene.claim("second", queue="other").cause == "org_limit"


def test_a_lapsed_slot_is_never_revived() -> None:
    scene = Scene()
    scene.send("a", 5)
    scene.claim()
    scene.seconds = 59.0
    assert scene.database.renew("q", "h", 60)
    scene.seconds = 119.0

    assert not scene.database.renew("q", "h", 60)
    beat = scene.database.heartbeat("q", "h", 60, 120, [Delivery(1, 1)])
    assert (beat.slot_alive, beat.extended) == (False, {1})


def test_claiming_again_moves_the_one_slot_of_a_holder() -> None:
    scene = Scene()
    scene.send("a")
    scene.send("b")

    scene.claim()
    scene.claim()

    assert [(s.holder, s.org) for s in scene.database.slots.live(0.0)] == [("h", "b")]


def test_an_answer_without_messages_leaves_no_new_slot_behind() -> None:
    scene = Scene()
    scene.send("a")
    scene.database.slots.state_of("a").paused = True

    assert scene.claim().cause == "paused"
    assert scene.claim(pin="b").status is ClaimStatus.NO_DEMAND
    assert list(scene.database.slots.live(0.0)) == []


def test_release_frees_the_slot_of_that_holder_in_that_queue_alone() -> None:
    scene = Scene("q", "other")
    scene.send("a")
    scene.claim()

    assert not scene.database.release("other", "h")
    assert not scene.database.release("q", "somebody")
    assert scene.database.release("q", "h")
    assert not scene.database.release("q", "h")


def test_tokens_start_no_more_than_burst_and_rate() -> None:
    scene = Scene()
    scene.send("a", 100)
    state = scene.database.slots.state_of("a")
    state.starts_per_minute, state.burst = 6.0, 3

    assert len(scene.claim().messages) == 3
    empty = scene.claim(pin="a")
    assert (empty.cause, empty.retry_after_ms) == ("tokens", 10_000)
    started = 3
    for second in range(1, 601):
        scene.seconds = float(second)
        started += len(scene.claim(pin="a").messages)
    assert started <= 3 + 6 * 10


@pytest.mark.parametrize(
    ("outcome", "where", "attempt"),
    [
        (Done, "archive", None),
        (DeadLetter, "dead", None),
        (RetryLater, "rows", 2),
        (SnoozeUntil, "rows", 1),
        (GiveBack, "rows", 1),
    ],
)
def test_an_outcome_is_applied_once_and_counts_what_it_should(
    outcome: type[Any], where: str, attempt: int | None
) -> None:
    scene = Scene()
    (msg_id,) = scene.send()
    (message,) = scene.claim().messages

    assert scene.settle(outcome(message.delivery)) == ["applied"]
    again = SettleResult.ALREADY if where == "rows" else SettleResult.GONE
    assert scene.settle(outcome(message.delivery)) == [again.value]
    assert msg_id in getattr(scene.database.queues["q"], where)
    if attempt is not None:
        (next_one,) = scene.claim(pin="a").messages
        assert (next_one.read_ct, next_one.attempt, next_one.crashes) == (2, attempt, 0)
        assert not next_one.suspect
        assert scene.settle(outcome(message.delivery)) == ["lost"]


def test_deliveries_that_began_and_never_ended_are_crashes() -> None:
    scene = Scene()
    scene.send()
    crashes = []
    for k in range(4):
        scene.seconds = k * 200.0
        (message,) = scene.claim(f"h{k}").messages
        crashes.append((message.crashes, message.suspect))
        if message.suspect:
            scene.database.heartbeat("q", f"h{k}", 60, 120, [message.delivery])

    assert crashes == [(0, False), (0, True), (1, True), (2, True)]
    assert scene.settle(RetryLater(message.delivery)) == ["applied"]
    assert scene.claim("h3").messages[0].crashes == 2


def test_a_heartbeat_extends_what_runs_and_leaves_what_is_over() -> None:
    scene = Scene()
    scene.send(count=3)
    first, second, third = scene.claim().messages
    scene.settle(Done(first.delivery), GiveBack(second.delivery))
    scene.seconds = 10.0
    deliveries = [first.delivery, second.delivery, third.delivery]

    beat = scene.database.heartbeat("q", "h", 60, 120, deliveries)

    assert (beat.gone, beat.lost, beat.extended) == ({1}, {2}, {3})
    assert scene.database.queues["q"].rows[2].visible_at == 0.0
    assert scene.database.queues["q"].rows[3].visible_at == 130.0


def test_an_open_circuit_takes_the_org_out_and_one_probe_closes_it() -> None:
    scene = Scene()
    scene.send("a", 9)
    first, second, *_ = scene.claim().messages
    limit = Limit(60.0, "secondary")

    scene.settle(SnoozeUntil(first.delivery, limit=limit))
    assert scene.claim(pin="a").cause == "circuit"
    scene.seconds = 61.0
    (probe,) = scene.claim(pin="a").messages
    assert scene.claim(pin="a").cause == "circuit"
    # Another's late success decides nothing.
    scene.settle(Done(second.delivery))
    assert scene.claim(pin="a").cause == "circuit"
    scene.settle(Done(probe.delivery))
    assert len(scene.claim(pin="a").messages) == 4


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"holder": ""}, "holder"),
        ({"n": 0}, "n:"),
        ({"sleep_seconds": -1}, "sleep_seconds"),
        ({"lease_ttl_seconds": 0}, "lease_ttl_seconds"),
        ({"pin": ""}, "pin_org"),
        ({"queue": "nobody's"}, "attach"),
    ],
)
def test_a_bad_argument_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(CallRefused, match=named):
        Scene().claim(**change)
