"""The host with a real database behind it: a poke drains a queue, readiness tells the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest

from fairlease.admin import queues
from stack.hosts import HostProcess, eventually, running_host

if TYPE_CHECKING:
    from pathlib import Path

DRAIN = 'name = "adder"\nkind = "drain"\nqueues = ["sums"]\n[knobs]\nidle_budget_seconds = 0\n'
HANDLERS = """
import asyncio
from pydantic import BaseModel
from fairlease import Context, Worker

worker = Worker()

class Sum(BaseModel):
    a: int
    b: int

@worker.handler("add")
async def add(args: Sum, ctx: Context) -> None:
    print("sum", ctx.org, args.a + args.b, flush=True)

@worker.handler("add_slowly")
async def add_slowly(args: Sum, ctx: Context) -> None:
    print("begun", flush=True)
    await asyncio.sleep(0.5)
    print("sum", ctx.org, args.a + args.b, flush=True)
"""


def write_adder(root: Path) -> Path:
    folder = root / "adder"
    folder.mkdir()
    (folder / "function.toml").write_text(DRAIN)
    (folder / "handlers.py").write_text(HANDLERS)
    return root


def send(database: str, a: int, b: int, method: str = "add") -> None:
    body = {"method": method, "org": "acme", "args": {"a": a, "b": b}}
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "select pgmq.send('sums', %s)", (psycopg.types.json.Jsonb(body),)
        ).fetchone()


def archived(database: str) -> int:
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute("select count(*) from pgmq.a_sums").fetchone()
    return row[0] if row else 0


def ready(host: HostProcess) -> httpx.Response:
    return httpx.get(f"{host.url}/readyz", timeout=10)


def test_a_poke_drains_the_queue_of_a_function(database: str, tmp_path: Path) -> None:
    queues.ensure(database, ["sums"])
    send(database, 20, 22)
    with running_host(write_adder(tmp_path), FAIRLEASE_DATABASE_URL=database) as host:
        assert ready(host).json()["problems"] == []
        assert host.poke("adder").json()["status"] == "accepted"
        assert host.line() == "sum acme 42"
        assert eventually(lambda: archived(database) == 1)
        assert eventually(lambda: host.poke("adder").json()["status"] == "accepted")


def test_a_stop_lets_the_message_in_flight_finish_and_settle(database: str, tmp_path: Path) -> None:
    queues.ensure(database, ["sums"])
    send(database, 1, 2, "add_slowly")
    with running_host(write_adder(tmp_path), FAIRLEASE_DATABASE_URL=database) as host:
        host.poke("adder")
        assert host.line() == "begun"
        host.process.terminate()
        assert host.line() == "sum acme 3"
        assert host.wait() == 0
    assert archived(database) == 1


@pytest.mark.slow
def test_a_host_without_its_database_starts_and_is_not_ready(tmp_path: Path) -> None:
    nowhere = "postgresql://postgres:hush@127.0.0.1:1/postgres"
    with running_host(write_adder(tmp_path), FAIRLEASE_DATABASE_URL=nowhere) as host:
        answer = ready(host)
        assert answer.status_code == 503
        assert "does not answer" in answer.json()["problems"][0]
        assert "hush" not in answer.text
        assert httpx.get(f"{host.url}/healthz").status_code == 200


def test_a_queue_that_nobody_attached_is_said(database: str, tmp_path: Path) -> None:
    with running_host(write_adder(tmp_path), FAIRLEASE_DATABASE_URL=database) as host:
        answer = ready(host)
        assert answer.status_code == 200
        assert "fairlease queue attach" in answer.json()["notes"][0]
