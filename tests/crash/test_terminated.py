"""SIGTERM in mid-run: nothing new, what never started goes back, handlers have their grace, and the
report names what did not end. Then the same for a host that is killed."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from crash.processes import WorkerProcess, working
from crash.worker_process import Orders

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

QUEUE = "terminated"
VISIBILITY_SECONDS = 60
GRACE_SECONDS = 3.0
KNOBS = {
    "drain_concurrency": 4,
    "visibility_timeout_seconds": VISIBILITY_SECONDS,
    "org_slot_lease_ttl_seconds": 45,
}
#: Ends before the signal; ends within the grace; is cancelled; cannot be.
QUICK, IN_TIME, LONG, STUBBORN = (
    {"ms": 100},
    {"ms": 1_500},
    {"ms": 60_000},
    {"ms": 60_000, "stubborn": True},
)


def send(session: psycopg.Connection, *arguments: dict[str, Any]) -> list[int]:
    sent = []
    for given in arguments:
        body = json.dumps({"org": "a", "method": "work", "args": given})
        row = session.execute("select pgmq.send(%s, %s::jsonb)", [QUEUE, body]).fetchone()
        sent.append(row[0] if row else -1)
    return sent


@pytest.fixture
def session(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as session:
        session.execute("select fairlease.attach_queue(%s)", [QUEUE])
        yield session


def claim(session: psycopg.Connection, n: int = 10) -> dict[int, dict[str, Any]]:
    """What another worker gets, whatever slots are held."""
    row = session.execute(
        "select pgmq_public.settle_and_claim(%s, 'other', '[]', %s, 60, 60, 8, 8)", [QUEUE, n]
    ).fetchone()
    return {message["msg_id"]: message for message in (row or [{}])[0]["messages"]}


def stopped(worker: WorkerProcess) -> float:
    """Send the signal; seconds until the process has ended by itself."""
    begun = time.monotonic()
    worker.send(signal.SIGTERM)
    report = worker.wait_for("report")
    assert worker.process.wait(10) == 0
    assert report["reason"] == "stopping"
    return time.monotonic() - begun


@pytest.mark.slow
def test_a_stop_gives_back_what_never_started_and_names_what_does_not_end(
    session: psycopg.Connection, database: str
) -> None:
    quick, in_time, long, stubborn = send(session, QUICK, IN_TIME, LONG, STUBBORN)
    (late,) = send(session, QUICK)
    orders = Orders(
        database, QUEUE, knobs=KNOBS, grace_seconds=GRACE_SECONDS, answer_delay_seconds=0.5
    )
    with working(orders) as worker:
        # The top-up after the quick one has hidden the late one, and its answer is on the way.
        assert worker.wait_for("held")["messages"] == [late]
        seconds = stopped(worker)
        report = worker.told[-1]
    assert seconds < GRACE_SECONDS
    assert sorted(worker.ids_of("start")) == [quick, in_time, long, stubborn]
    assert sorted(worker.ids_of("end")) == [quick, in_time]
    assert report["still_running"] == [stubborn]
    again = claim(session)
    assert set(again) == {long, late}
    assert {message["attempt"] for message in again.values()} == {1}
    assert {message["read_ct"] for message in again.values()} == {2}
    # The slot of the one that still runs is left to lapse, and the message to its timeout.
    assert session.execute(
        "select count(*) from fairlease.seats where holder like 'crash/%'"
    ).fetchone() == (1,)
    assert (
        session.execute(f"select vt > clock_timestamp() from pgmq.q_{QUEUE}").fetchall()
        == [(True,)] * 3
    )


@pytest.mark.slow
def test_a_stop_with_nothing_in_flight_frees_the_slot_at_once(
    session: psycopg.Connection, database: str
) -> None:
    send(session, QUICK, QUICK)
    orders = Orders(database, QUEUE, knobs={**KNOBS, "idle_budget_seconds": 60})
    with working(orders) as worker:
        worker.wait_for("end")
        worker.wait_for("end")
        worker.wait_for("SettleAnswered")
        assert stopped(worker) < 5.0
    assert session.execute(
        "select count(*) from fairlease.seats where holder is not null"
    ).fetchone() == (0,)
    assert claim(session) == {}
