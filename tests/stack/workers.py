"""Real `fairlease work` processes for tests, with a drain that says what it does."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import psycopg

from fairlease.admin import queues
from stack.hosts import PATIENCE_SECONDS, HostProcess, host_environ

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUEUE = "naps"
MANIFEST = 'name = "napper"\nkind = "drain"\nqueues = ["naps"]\n'
HANDLERS = """
import asyncio, os, time
from pydantic import BaseModel
from fairlease import Context, Worker

worker = Worker()

class Nap(BaseModel):
    ms: int = 0
    stubborn: bool = False

def say(what, ctx):
    print(what, ctx.msg_id, ctx.org, os.getpid(), ctx.attempt, flush=True)

@worker.handler("nap", timeout=600.0)
async def nap(args: Nap, ctx: Context) -> None:
    say("begun", ctx)
    left = args.ms / 1000
    while left > 0:
        since = ctx.clock.monotonic()
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            if not args.stubborn:
                raise
        left -= ctx.clock.monotonic() - since
    say("ended", ctx)

@worker.handler("block")
async def block(args: Nap, ctx: Context) -> None:
    say("begun", ctx)
    time.sleep(args.ms / 1000)
"""
# The first empty look is 60 s before the second: what is faster was woken.
SLOW_POLLS = {"FAIRLEASE_POLL_IDLE_SECONDS": "60", "FAIRLEASE_POLL_MAX_SECONDS": "600"}


@dataclass
class WorkProcess(HostProcess):
    """One `fairlease work`."""

    def __post_init__(self) -> None:
        """A worker that answers in JSON says nothing before its end."""
        if "--json" in cast("list[str]", self.process.args):
            threading.Thread(target=self._read, daemon=True).start()
        else:
            super().__post_init__()

    def stopped(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.wait()


def write_napper(root: Path) -> Path:
    folder = root / "napper"
    folder.mkdir(parents=True)
    (folder / "function.toml").write_text(MANIFEST)
    (folder / "handlers.py").write_text(HANDLERS)
    return root


def work_command(functions: Path) -> list[str]:
    fairlease = [sys.executable, "-c", "from fairlease.cli.main import run; run()", "work"]
    return [*fairlease, "--functions", str(functions)]


@contextlib.contextmanager
def working(
    functions: Path, database: str, *options: str, **variables: str
) -> Iterator[WorkProcess]:
    log = functions / f"log_{len(list(functions.iterdir()))}"
    given = {"FAIRLEASE_DATABASE_URL": database, "EDGE_FUNCTION_SECRET": "", **variables}
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*work_command(functions), *options],
            env=host_environ(**{**SLOW_POLLS, **given}),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
    try:
        yield WorkProcess(process, log=log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_SECONDS)
        assert process.stdout is not None
        process.stdout.close()


def prepare(database: str, *, throttle_ms: int = 250) -> psycopg.Connection:
    """A session on a database whose queue tells of new messages."""
    queues.ensure(database, [QUEUE])
    session = psycopg.connect(database, autocommit=True)
    session.execute("select pgmq.enable_notify_insert(%s, %s)", [QUEUE, throttle_ms])
    return session


def send(session: psycopg.Connection, org: str = "a", method: str = "nap", **args: object) -> int:
    body = json.dumps({"method": method, "org": org, "args": args})
    row = session.execute("select pgmq.send(%s, %s::jsonb)", [QUEUE, body]).fetchone()
    assert row is not None
    return int(row[0])


def is_listening(session: psycopg.Connection) -> bool:
    """Proven, and waiting for more."""
    row = session.execute(
        "select count(*) from pg_stat_activity where application_name = 'fairlease listen'"
        " and datname = current_database() and query like '%trigger_notify%'"
    ).fetchone()
    return row == (1,)
