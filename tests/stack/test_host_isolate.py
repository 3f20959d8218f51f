"""The end of an isolate's life: retirement, and a wall clock that nothing outlives."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from stack.hosts import (
    NAP,
    PATIENCE_SECONDS,
    SECRET,
    HostProcess,
    alive,
    eventually,
    running_host,
    write_task,
)

if TYPE_CHECKING:
    from pathlib import Path

WATCHED = """
import re, time
from fairlease.clock import SystemClock
from fairlease.host.isolate import Watchdog

clock = SystemClock()
Watchdog(clock, clock.monotonic() + 0.3, grace_seconds=1).start()
print("started", flush=True)
{busy}
"""
RETIRES = NAP.replace('say("started")', 'say("started"); ask_parent_for_successor()')
RETIRES = "from fairlease.host.isolate import ask_parent_for_successor\n" + RETIRES
STUBBORN = """
import asyncio, os
async def run(ctx):
    print("started", os.getpid(), flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
"""
BLOCKS = """
import os, time
async def run(ctx):
    print("started", os.getpid(), flush=True)
    time.sleep(3600)
"""


@pytest.mark.parametrize(
    ("busy", "exit_code"),
    [
        ("time.sleep(60)", 70),
        ("while True: pass", 70),
        # C code that never lets go of the interpreter: no thread of ours runs, the kernel acts.
        ("re.match('(a+)+$', 'a' * 40 + 'b')", -signal.SIGALRM),
    ],
)
def test_nothing_that_a_handler_does_outlives_the_wall_clock(busy: str, exit_code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WATCHED.replace("{busy}", busy)], stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.wait(PATIENCE_SECONDS) == exit_code
        finally:
            process.kill()


def test_a_retiring_isolate_is_told_to_stop_once_its_successor_serves(tmp_path: Path) -> None:
    write_task(tmp_path, "retires", RETIRES)
    write_task(tmp_path, "nap", NAP)
    with running_host(tmp_path) as host:
        old = host.started("retires")
        assert host.line() == f"told {old}"
        assert host.line() == f"ended {old}"
        assert eventually(lambda: not alive(old))
        assert host.started("nap") != old


@pytest.mark.slow
def test_a_blocked_isolate_takes_no_poke_from_its_successor(tmp_path: Path) -> None:
    write_task(tmp_path, "blocks", BLOCKS)
    write_task(tmp_path, "nap", NAP)
    with running_host(tmp_path) as host:
        old = host.started("blocks")
        host.process.send_signal(signal.SIGHUP)
        # What the old one has accepted by now nobody answers; it accepts no more soon after.
        assert eventually(lambda: [poked(host) for _ in range(10)] == [202] * 10)
        assert [poked(host) for _ in range(20)] == [202] * 20
        assert alive(old)


def poked(host: HostProcess) -> int:
    """The status, or 0 where nobody answered in time."""
    url, headers = f"{host.url}/functions/v1/nap", {"x-edge-function-secret": SECRET}
    try:
        return httpx.post(url, headers=headers, timeout=2).status_code
    except httpx.TimeoutException:
        return 0


@pytest.mark.slow
def test_an_isolate_is_succeeded_at_its_budget_and_dead_at_its_lifetime(tmp_path: Path) -> None:
    write_task(tmp_path, "stubborn", STUBBORN)
    with running_host(tmp_path, FAIRLEASE_ISOLATE_LIFETIME_MS="150000") as host:
        old = host.started("stubborn")
        assert not eventually(lambda: host.poke("stubborn").json()["status"] == "accepted", 115)
        assert eventually(lambda: host.poke("stubborn").json()["status"] == "accepted", 20)
        assert alive(old)
        assert eventually(lambda: not alive(old), 30)
