"""Settles and heartbeats look messages up; they never look through them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    import psycopg

    from plans.conftest import Buffers, Fill

SETTLE = "select pgmq_public.settle_and_claim('jobs', 'h1', %s, 0, 120, 600, 1, 8)"
HEARTBEAT = "select pgmq_public.heartbeat_org_slot('jobs', 'h1', 600, 120, %s)"


def delivered(session: psycopg.Connection) -> None:
    session.execute("update pgmq.q_jobs set read_ct = 1, vt = vt + interval '1 h'")
    session.execute("vacuum (analyze) pgmq.q_jobs")


def outcomes(verb: str, first: int, count: int) -> Jsonb:
    said: list[dict[str, Any]] = [
        {"id": number, "ct": 1, "do": verb, "after_ms": 60_000}
        for number in range(first, first + count)
    ]
    return Jsonb(said)


def remember_states(session: psycopg.Connection) -> None:
    """State of every message, behind the back of plans and statistics."""
    session.execute(
        "insert into fairlease.message_state (queue, msg_id, enqueued_at, closed_count) "
        "select 'jobs', msg_id, enqueued_at, 0 from pgmq.q_jobs on conflict do nothing"
    )


def test_settling_reads_by_id_however_deep_the_queue_and_its_states(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection
) -> None:
    fill(20_000, org="'o' || i % 100")
    delivered(connection)
    verbs = {"done": 1, "retry": 100, "dead": 200, "give_back": 300}
    for verb, first in verbs.items():
        for number in range(5):
            connection.execute(SETTLE, (outcomes(verb, first + number, 1),))
    remember_states(connection)
    for verb, first in verbs.items():
        connection.execute(SETTLE, (outcomes(verb, first + 9, 1),))
        assert buffers(SETTLE, outcomes(verb, first + 10, 1)) <= 70, verb
        assert buffers(SETTLE, outcomes(verb, first + 20, 50)) <= 50 * 45, verb


def test_a_heartbeat_reads_by_id_however_deep_the_queue_and_its_states(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection
) -> None:
    fill(20_000, org="'o' || i % 100")
    delivered(connection)
    for _ in range(3):
        connection.execute(HEARTBEAT, (Jsonb([[1, 1]]),))
    remember_states(connection)
    connection.execute(HEARTBEAT, (Jsonb([[1, 1]]),))
    assert buffers(HEARTBEAT, Jsonb([[2, 1]])) <= 60
    assert buffers(HEARTBEAT, Jsonb([[n, 1] for n in range(100, 200)])) <= 100 * 40


def test_a_claim_that_says_its_attempts_looks_states_up_one_by_one(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection
) -> None:
    fill(20_000, org="'o'")
    claim = "select pgmq_public.settle_and_claim('jobs', 'h1', '[]', 1, 120, 600, 1, 8, 'o')"
    for _ in range(4):
        connection.execute(claim)
    remember_states(connection)
    connection.execute(claim)
    assert buffers(claim) <= 60


def test_sending_touches_the_queue_only_where_it_writes(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection
) -> None:
    connection.execute("select fairlease.attach_queue('jobs', unique_keys => true)")
    fill(20_000, org="'o' || i % 100")
    send = "select pgmq_public.send_messages('jobs', %s)"
    for number in range(4):
        connection.execute(send, (Jsonb([{"message": {}, "key": f"w{number}"}]),))
    assert buffers(send, Jsonb([{"message": {}, "key": "x"}])) <= 60
    assert buffers(send, Jsonb([{"message": {}, "key": "x"}])) <= 90, "its bearer is looked up"


@pytest.mark.parametrize("rows", [0, 1])
def test_plans_made_for_a_queue_that_was_drained_stay_right(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection, rows: int
) -> None:
    """One page of an index seems as cheap as the next; of a burst it is all of it."""
    fill(rows, org="'o'")
    connection.execute("vacuum (analyze) fairlease.message_state")
    for number in range(5):
        for verb in ("done", "retry", "dead"):
            said = [*outcomes(verb, 10**6 + number, 1).obj, *outcomes("done", 10**7, 1).obj]
            connection.execute(SETTLE, (Jsonb(said),))
            connection.execute(SETTLE, (outcomes(verb, 10**6, 2),))
        connection.execute(HEARTBEAT, (Jsonb([[1, 1]]),))
    fill(20_000, org="'o' || i % 100", analyze=False)
    connection.execute("update pgmq.q_jobs set read_ct = 1, vt = vt + interval '1 h'")
    for number, verb in enumerate(["done", "retry", "dead", "give_back"]):
        first = 1000 + 100 * number
        connection.execute(SETTLE, (outcomes(verb, first, 1),))
        assert buffers(SETTLE, outcomes(verb, first + 1, 1)) <= 70, verb
        assert buffers(SETTLE, outcomes(verb, first + 20, 50)) <= 50 * 45, verb
    assert buffers(HEARTBEAT, Jsonb([[2, 1]])) <= 60
    assert buffers(HEARTBEAT, Jsonb([[n, 1] for n in range(100, 200)])) <= 100 * 40
