"""Handlers that hang, for real: their isolate dies in time, and another does the work."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import pytest

from stack.hosts import HostProcess, alive, eventually, running_host
from stack.workers import QUEUE, prepare, send, write_napper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psycopg

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FOREVER_MS = 3_600_000
# The shortest life that a knob allows, and how far into it runs may claim.
LIFETIME_SECONDS = 150
BUDGET_SECONDS = 120
STALL_SECONDS = 30
# What cancelled handlers are given to end, and what a busy machine takes to notice.
ENDING_SECONDS = 5
SLACK_SECONDS = 3
# Leases and visibility run five times faster, and who idles looks every second.
SCALE = 5
FAST = {
    "FAIRLEASE_TIME_SCALE": str(SCALE),
    "FAIRLEASE_POLL_IDLE_SECONDS": str(SCALE),
    "FAIRLEASE_POLL_MAX_SECONDS": str(SCALE),
}


@pytest.fixture
def session(database: str) -> Iterator[psycopg.Connection]:
    with prepare(database) as session:
        yield session


@dataclass(frozen=True)
class Begun:
    msg_id: int
    process: int
    attempt: int
    at: float


def begun(host: HostProcess) -> Begun:
    what, msg_id, _, process, attempt = host.line().split()
    assert what == "begun"
    return Begun(int(msg_id), int(process), int(attempt), time.monotonic())


def begun_again(host: HostProcess, seconds: float) -> Begun:
    """Poke every second, as a very eager cron would, until a message begins."""
    end = time.monotonic() + seconds
    while host.lines.empty() and time.monotonic() < end:
        host.poke("napper")
        time.sleep(1)
    return begun(host)


def claimable_in(session: psycopg.Connection) -> tuple[float, float]:
    """Seconds until the first message is visible again, and until the last slot has lapsed."""
    row = session.execute(
        f"select extract(epoch from (select min(vt) from pgmq.q_{QUEUE}) - clock_timestamp()),"
        " extract(epoch from max(expires_at) - clock_timestamp()) from fairlease.seats"
    ).fetchone()
    assert row is not None
    return float(row[0]), float(row[1])


@pytest.mark.parametrize(
    ("method", "stubborn", "visibility", "lease"),
    [
        # It swallows its cancellation, and the visibility timeout is the longer one.
        ("nap", True, 60, 45),
        # It blocks the event loop, and the lease of the slot is the longer one.
        ("block", False, 60, 90),
    ],
)
def test_an_isolate_without_progress_dies_and_another_takes_its_message(
    session: psycopg.Connection,
    database: str,
    tmp_path: Path,
    method: str,
    stubborn: bool,
    visibility: int,
    lease: int,
) -> None:
    sent = send(session, method=method, ms=FOREVER_MS, stubborn=stubborn)
    with running_host(
        write_napper(tmp_path / "functions"),
        FAIRLEASE_DATABASE_URL=database,
        FAIRLEASE_MAX_STALL_SECONDS=str(STALL_SECONDS),
        FAIRLEASE_VISIBILITY_TIMEOUT_SECONDS=str(visibility),
        FAIRLEASE_ORG_SLOT_LEASE_TTL_SECONDS=str(lease),
        **FAST,
    ) as host:
        host.poke("napper")
        first = begun(host)
        assert eventually(lambda: not alive(first.process), STALL_SECONDS + 20)
        died = time.monotonic()
        assert died - first.at < STALL_SECONDS + ENDING_SECONDS + SLACK_SECONDS
        visible, lapsed = claimable_in(session)
        # The promise: as soon as both are over, whichever is longer, and not before.
        assert 0 < visible <= visibility / SCALE
        assert 0 < lapsed <= lease / SCALE
        due = max(visible, lapsed)
        second = begun_again(host, due + 2 * SLACK_SECONDS)
        assert due - 1 < second.at - died < due + SLACK_SECONDS
        assert (second.msg_id, second.attempt) == (sent, 2)
        assert second.process != first.process


def test_a_blocked_isolate_dies_at_its_wall_clock_and_what_it_had_comes_back(
    session: psycopg.Connection, database: str, tmp_path: Path
) -> None:
    """Blocked so late that the stall would be seen only after the wall clock."""
    since = time.monotonic()
    with running_host(
        write_napper(tmp_path / "functions"),
        FAIRLEASE_DATABASE_URL=database,
        FAIRLEASE_ISOLATE_LIFETIME_MS=str(LIFETIME_SECONDS * 1000),
        FAIRLEASE_DRAIN_CONCURRENCY="2",
        FAIRLEASE_VISIBILITY_TIMEOUT_SECONDS="60",
        FAIRLEASE_ORG_SLOT_LEASE_TTL_SECONDS="45",
        **FAST,
    ) as host:
        born = time.monotonic()
        time.sleep(50)
        sent = {send(session, ms=FOREVER_MS), send(session, method="block", ms=FOREVER_MS)}
        host.poke("napper")
        first = [begun(host), begun(host)]
        assert {b.msg_id for b in first} == sent
        (old,) = {b.process for b in first}
        # Its successor serves from the end of its budget; the hung one keeps its messages.
        time.sleep(max(0.0, born + BUDGET_SECONDS + SLACK_SECONDS - time.monotonic()))
        answers = []
        while alive(old):
            answers.append(poked_within(host, 5))
            time.sleep(1)
        died = time.monotonic()
        assert since + LIFETIME_SECONDS - 1 < died < born + LIFETIME_SECONDS + SLACK_SECONDS
        assert set(answers) == {202}
        assert host.lines.empty(), "a message ran beside itself"
        visible, lapsed = claimable_in(session)
        assert 0 < max(visible, lapsed) <= 60 / SCALE
        again = begun_again(host, 60 / SCALE + 2 * SLACK_SECONDS)
        assert again.at - died < 60 / SCALE + SLACK_SECONDS
        assert {again.msg_id, begun(host).msg_id} == sent
        assert (again.attempt, again.process != old) == (2, True)


def poked_within(host: HostProcess, seconds: float) -> int:
    """The status, or 0 without an answer."""
    try:
        return httpx.post(
            f"{host.url}/functions/v1/napper",
            headers={"x-edge-function-secret": "s3cret"},
            timeout=seconds,
        ).status_code
    except httpx.TimeoutException:
        return 0


def test_a_late_run_stops_at_the_budget_of_its_isolate_and_the_next_isolate_goes_on(
    session: psycopg.Connection, database: str, tmp_path: Path
) -> None:
    """With a grace so short that the successor comes only once the isolate retires itself."""
    for _ in range(100):
        send(session, ms=400)
    since = time.monotonic()
    with running_host(
        write_napper(tmp_path / "functions"),
        log=tmp_path / "log",
        FAIRLEASE_DATABASE_URL=database,
        FAIRLEASE_ISOLATE_LIFETIME_MS=str(LIFETIME_SECONDS * 1000),
        FAIRLEASE_GRACE_SECONDS="11",
        FAIRLEASE_DRAIN_CONCURRENCY="1",
    ) as host:
        born = time.monotonic()
        time.sleep(BUDGET_SECONDS - 12)
        begins: dict[int, list[float]] = {}
        while len(begins) < 2 and time.monotonic() < born + LIFETIME_SECONDS:
            host.poke("napper")
            time.sleep(0.2)
            while not host.lines.empty():
                what, _, _, process, _ = host.lines.get().split()
                if what == "begun":
                    begins.setdefault(int(process), []).append(time.monotonic())
        early, late = begins.values()
        assert len(early) > 10
        assert since + BUDGET_SECONDS - 2 < early[-1] < born + BUDGET_SECONDS + 1
        assert late[0] < born + BUDGET_SECONDS + 10 + SLACK_SECONDS
        assert "reason=budget" in host.said()
