"""One isolate follows another: nobody who pokes in between is refused, whatever it ended of."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx
import pytest

from stack.hosts import (
    NAP,
    PATIENCE_SECONDS,
    alive,
    eventually,
    fails_to_start,
    half_a_poke,
    host_environ,
    running_host,
    serve_command,
    write_task,
)

if TYPE_CHECKING:
    from pathlib import Path

# Says its process, then dies of what a poison message does to it.
DIES = """
import os, signal
async def run(ctx):
    print("started", os.getpid(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
LEAKS = """
import asyncio, os
kept = []
async def run(ctx):
    print("started", os.getpid(), flush=True)
    while not ctx.stopping.is_set():
        kept.append(b"x" * 2**20)
        await asyncio.sleep(0.005)
    print("told", os.getpid(), flush=True)
"""
NEVER_SERVES = """
import multiprocessing, os
if multiprocessing.parent_process() is not None:
    os._exit(3)
async def run(ctx): ...
"""
# Told to stop, it goes on until its successor has been killed and the test says so.
LINGERS = """
import asyncio, os, pathlib
async def run(ctx):
    print("started", os.getpid(), flush=True)
    await ctx.stopping.wait()
    print("told", os.getpid(), flush=True)
    while not pathlib.Path({end!r}).exists():
        await asyncio.sleep(0.05)
"""


def test_a_poke_that_meets_no_isolate_waits_for_the_next_one(tmp_path: Path) -> None:
    write_task(tmp_path, "nap", NAP)
    with running_host(tmp_path) as host:
        old = host.started()
        os.kill(old, signal.SIGKILL)
        assert eventually(lambda: not alive(old))
        answers = [host.poke() for _ in range(3)]
        assert {answer.status_code for answer in answers} == {202}
        assert answers[0].json()["status"] == "accepted"
        assert int(host.line().split()[1]) != old


def test_no_poke_is_refused_while_isolates_follow_one_another(tmp_path: Path) -> None:
    write_task(tmp_path, "nap", NAP)
    with running_host(tmp_path) as host:
        over = threading.Event()

        def pokes() -> list[int]:
            said = []
            while not over.is_set():
                said.append(host.poke().status_code)
            return said

        with ThreadPoolExecutor() as pool:
            poking = [pool.submit(pokes) for _ in range(4)]
            lived = [int(host.line().split()[1])]
            for _ in range(2):
                host.process.send_signal(signal.SIGHUP)
                while (said := host.line().split())[0] != "started" or int(said[1]) in lived:
                    pass
                lived.append(int(said[1]))
                assert eventually(lambda: not alive(lived[-2]))
            over.set()
            answers = [code for future in poking for code in future.result()]
    assert set(answers) == {202}
    assert len(answers) > 20


def test_a_poke_that_is_through_only_after_the_stop_is_answered_by_the_successor(
    tmp_path: Path,
) -> None:
    write_task(tmp_path, "nap", NAP)
    write_task(tmp_path, "lingers", LINGERS.format(end=str(tmp_path / "end")))
    with running_host(tmp_path) as host, half_a_poke(host, "nap") as slow:
        old = host.started("lingers")
        host.process.send_signal(signal.SIGHUP)
        assert host.line() == f"told {old}"
        slow.sendall(b"y")
        answer = slow.recv(1000)
        assert answer.startswith(b"HTTP/1.1 202 ")
        assert b'"accepted"' in answer
        what, pid = host.line().split()
        assert (what, pid != str(old)) == ("started", True)


def test_a_successor_that_dies_is_replaced_while_its_predecessor_still_works(
    tmp_path: Path,
) -> None:
    end = tmp_path / "end"
    write_task(tmp_path, "lingers", LINGERS.format(end=str(end)))
    write_task(tmp_path, "nap", NAP)
    with running_host(tmp_path) as host:
        old = host.started("lingers")
        host.process.send_signal(signal.SIGHUP)
        assert host.line() == f"told {old}"
        second = host.started("nap")
        os.kill(second, signal.SIGKILL)
        third = host.started("nap")
        assert len({old, second, third}) == 3
        assert alive(old)
        end.touch()
        assert eventually(lambda: not alive(old))
        assert alive(third)


@pytest.mark.slow
def test_isolates_that_die_of_their_work_do_not_end_the_host(tmp_path: Path) -> None:
    write_task(tmp_path, "dies", DIES)
    with running_host(tmp_path) as host:
        pids = set()
        for _ in range(3):
            with contextlib.suppress(httpx.TransportError):  # it dies before it has answered
                host.poke("dies")
            pids.add(host.line())
        assert len(pids) == 3
        assert httpx.get(f"{host.url}/healthz", timeout=PATIENCE_SECONDS).status_code == 200


@pytest.mark.slow
def test_a_host_whose_isolates_never_come_to_serve_pauses_between_them_and_gives_up(
    tmp_path: Path,
) -> None:
    write_task(tmp_path, "broken", NEVER_SERVES)
    failed = fails_to_start(tmp_path)
    assert failed.returncode == 1
    assert failed.stdout == ""
    said = failed.stderr
    assert [line.rpartition("=")[2] for line in said.splitlines() if "an isolate died" in line] == [
        "0.0",
        "1.0",
        "2.0",
        "4.0",
    ]
    assert "5 isolates died before they served; giving up" in said


@pytest.mark.slow
def test_a_stop_in_the_pause_between_two_isolates_ends_the_host_at_once(tmp_path: Path) -> None:
    write_task(tmp_path, "broken", NEVER_SERVES)
    with subprocess.Popen(
        serve_command(tmp_path), env=host_environ(), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "pause_seconds=4.0" in line:
                break
        process.terminate()
        assert process.wait(2) == 0


@pytest.mark.slow
def test_an_isolate_that_leaks_is_replaced_and_its_run_is_told_to_stop(tmp_path: Path) -> None:
    write_task(tmp_path, "leaks", LEAKS)
    write_task(tmp_path, "nap", NAP)
    with running_host(tmp_path, "--max-rss-mb", "200") as host:
        old = host.started("leaks")
        assert host.line() == f"told {old}"
        assert eventually(lambda: not alive(old))
        assert host.started("nap") != old
