"""Hosts are restarted in turn while messages flow and pokes come: nobody notices."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import psycopg
import pytest

from stack.fleet import Service
from stack.hosts import HostProcess, eventually, running_host
from stack.workers import QUEUE, prepare, send, write_napper

if TYPE_CHECKING:
    from pathlib import Path

RESTARTS = 4
ORGS = 5
# Every tenth message outlives the stop of its host: 3 s, where handlers are cancelled after 1 s.
LONG_MS = 3_000
GRACE_SECONDS = 11


def send_until(over: threading.Event, database: str, sent: list[int]) -> None:
    dice = random.Random(7)
    with psycopg.connect(database, autocommit=True) as session:
        while not over.wait(0.06):
            ms = LONG_MS if len(sent) % 10 == 9 else dice.randint(20, 300)
            sent.append(send(session, org=f"org{dice.randrange(ORGS)}", ms=ms))


def said_by(hosts: list[HostProcess], what: str) -> list[tuple[int, int]]:
    """(message, attempt) of every such line."""
    lines = [line.split() for host in hosts for line in tuple(host.lines.queue) if line]
    return [(int(line[1]), int(line[4])) for line in lines if line[0] == what]


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_rolling_restart_under_load_loses_no_message_does_none_twice_and_fails_no_poke(
    database: str, tmp_path: Path
) -> None:
    functions = write_napper(tmp_path / "functions")
    sent: list[int] = []
    over = threading.Event()
    sending = threading.Thread(target=send_until, args=(over, database, sent))
    service = Service()
    with prepare(database) as session, contextlib.ExitStack() as stack:

        def start() -> HostProcess:
            settings = {
                "FAIRLEASE_DATABASE_URL": database,
                "FAIRLEASE_GRACE_SECONDS": str(GRACE_SECONDS),
                "FAIRLEASE_POLL_IDLE_SECONDS": "1",
                "FAIRLEASE_POLL_MAX_SECONDS": "1",
            }
            return stack.enter_context(running_host(functions, **settings))

        hosts = [start(), start()]
        for host in hosts:
            service.add(host)
        sending.start()
        with service.poked("napper", threads=3):
            time.sleep(1)
            for turn in range(RESTARTS):
                hosts.append(start())
                assert service.restart(hosts[turn], hosts[-1]) == 0
            over.set()
            sending.join()
            assert eventually(
                lambda: session.execute(f"select count(*) from pgmq.q_{QUEUE}").fetchone() == (0,),
                60,
            )
        ends, begins = said_by(hosts, "ended"), said_by(hosts, "begun")
        archived = session.execute(f"select count(*) from pgmq.a_{QUEUE}").fetchone()
    assert set(service.answers) == {202}
    assert len(service.answers) > 100
    assert len(sent) > 100
    # Every message has ended once; one that was begun twice was given back, which counts nothing.
    assert Counter(msg_id for msg_id, _ in ends) == Counter(sent)
    assert archived == (len(sent),)
    assert {attempt for _, attempt in begins} == {1}
    again = len(begins) - len(sent)
    assert 0 < again <= RESTARTS * 4
