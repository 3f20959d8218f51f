"""A thousand pokes at once, doubled and late ones: one run, nothing lost, nothing that grows."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest

from fairlease.admin import queues
from stack.hosts import SECRET, HostProcess, eventually, running_host
from stack.test_host_database import archived, send

if TYPE_CHECKING:
    from collections.abc import Iterator

STORM = 1000
# Pokes over one connection: fifty of them stand side by side.
EACH = 20
MESSAGES = 40
MANIFEST = 'name = "adder"\nkind = "drain"\nqueues = ["sums"]\n[knobs]\nidle_budget_seconds = {}\n'
# Says where it runs, and waits a little, so that the storm meets a run that works.
HANDLERS = """
import asyncio, os
from typing import Any
from fairlease import Context, Worker

worker = Worker()

@worker.handler("add")
async def add(args: dict[str, Any], ctx: Context) -> None:
    print("sum", os.getpid(), args["a"], flush=True)
    await asyncio.sleep(0.05)
"""


def write_adder(root: Path, idle_seconds: int) -> Path:
    folder = root / "adder"
    folder.mkdir()
    (folder / "function.toml").write_text(MANIFEST.format(idle_seconds))
    (folder / "handlers.py").write_text(HANDLERS)
    return root


def storm(url: str) -> list[tuple[int, str, str]]:
    """(HTTP status, what was said, run) of every poke, fifty in flight at a time."""

    headers = {"x-edge-function-secret": SECRET}
    target = f"{url}/functions/v1/adder"

    async def several() -> list[tuple[int, str, str]]:
        async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
            answers = [await client.post(target, headers=headers) for _ in range(EACH)]
        return [(a.status_code, a.json()["status"], a.json()["run_id"]) for a in answers]

    async def main() -> list[tuple[int, str, str]]:
        parts = await asyncio.gather(*(several() for _ in range(STORM // EACH)))
        return [answer for part in parts for answer in part]

    return asyncio.run(main())


def resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@pytest.fixture
def host(database: str, tmp_path: Path) -> Iterator[HostProcess]:
    queues.ensure(database, ["sums"])
    folder = write_adder(tmp_path, 60)
    with running_host(folder, FAIRLEASE_DATABASE_URL=database) as running:
        yield running


def sums(host: HostProcess, number: int) -> tuple[int, list[int]]:
    """The worker's process, and what it added."""
    lines = [host.line().split() for _ in range(number)]
    assert {line[0] for line in lines} == {"sum"}
    (pid,) = {int(line[1]) for line in lines}
    return pid, sorted(int(line[2]) for line in lines)


def test_a_storm_is_one_run_and_every_message_is_done_once(
    database: str, host: HostProcess
) -> None:
    for number in range(MESSAGES):
        send(database, number, 0)
    answers = storm(host.url)
    assert Counter((code, status) for code, status, _ in answers) == {
        (202, "accepted"): 1,
        (202, "already_running"): STORM - 1,
    }
    assert len({run for _, _, run in answers}) == 1
    assert sums(host, MESSAGES)[1] == list(range(MESSAGES))
    assert eventually(lambda: archived(database) == MESSAGES)
    assert host.lines.empty(), "a message was done twice"


@pytest.mark.slow
def test_a_storm_is_cheap_and_leaves_nothing_behind(database: str, host: HostProcess) -> None:
    send(database, 1, 0)
    storm(host.url)
    pid, _ = sums(host, 1)
    memory, files, used = resident_mib(pid), open_files(pid), processor_seconds(pid)
    for _ in range(3):
        assert len(storm(host.url)) == STORM
    # Far above what it takes, far below what a run for each poke would.
    assert (processor_seconds(pid) - used) / (3 * STORM) < 0.005
    assert resident_mib(pid) - memory < 8
    assert eventually(lambda: open_files(pid) <= files + 2)


def test_a_late_poke_is_a_run_that_finds_nothing(database: str, tmp_path: Path) -> None:
    queues.ensure(database, ["sums"])
    send(database, 1, 0)
    with running_host(write_adder(tmp_path, 0), FAIRLEASE_DATABASE_URL=database) as host:
        first = host.poke("adder").json()
        assert host.line().startswith("sum ")
        assert eventually(lambda: archived(database) == 1)
        assert eventually(lambda: host.poke("adder").json()["run_id"] != first["run_id"])
        assert eventually(lambda: idle(database))
        assert host.lines.empty()
        with psycopg.connect(database) as connection:
            assert connection.execute("select count(*) from pgmq.q_sums").fetchone() == (0,)


def idle(database: str) -> bool:
    with psycopg.connect(database) as connection:
        taken = connection.execute("select count(holder) from fairlease.seats").fetchone()
    return taken == (0,)
