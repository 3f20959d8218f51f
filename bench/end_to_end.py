"""No-op messages per second from queue to archive, beside a bare loop of `pgmq.read` and `archive`.

    python -m bench.end_to_end [--messages N] [--rounds N] [--orgs N] [--out FOLDER]

The bare loop reads 100, decodes the JSON, awaits one no-op per message and archives the batch: no
orgs, no slots, no fences, no retries. Beside it the engine with 4, 32, 100 and 200 in flight:
directly with telemetry off, directly with metrics and logs, and through the local gateway. Then
how soon a message is picked up. Interleaved rounds, medians. Ends with 1 if the bar is missed:
directly, with telemetry off and 100 in flight, at least 0.8 x the bare loop.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from bench.pickup import pickup_milliseconds
from bench.server import migrated_server
from psycopg.rows import dict_row
from pydantic import BaseModel

from fairlease import Context, Worker
from fairlease.app import App
from fairlease.telemetry.logs import log_event
from fairlease.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlease.events import Observer

QUEUE = "bench"
# As pgmq makes it: without the index by org that the engine needs.
PLAIN_QUEUE = "plain"
KEY = "sb_secret_bench"
IN_FLIGHT = (4, 32, 100, 200)
BARE_BATCH = 100
BAR = 0.8
READ = "select msg_id, read_ct, message from pgmq.read(%s, 120, %s)"
ARCHIVE = "select * from pgmq.archive(%s, %s::bigint[])"

worker = Worker()


class Nothing(BaseModel):
    number: int


@worker.handler("nothing")
async def nothing(args: Nothing, ctx: Context) -> None:
    """What is measured is everything around it."""


@dataclass(frozen=True)
class Way:
    """One way from the queue to the archive."""

    name: str
    in_flight: int
    environ: dict[str, str]
    observers: tuple[Observer, ...] = ()

    async def drain(self) -> None:
        knobs = {
            "drain_concurrency": self.in_flight,
            "org_in_flight_ceiling": 1000,
            "idle_budget_seconds": 0,
        }
        app = App(self.environ, observers=self.observers)
        try:
            await app.drain("bench", [QUEUE], worker.handlers, knobs).run()
        finally:
            await app.aclose()


async def bare(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(
        url, autocommit=True, row_factory=dict_row
    ) as session:
        while True:
            rows = await (await session.execute(READ, (PLAIN_QUEUE, BARE_BATCH))).fetchall()
            if not rows:
                return
            for row in rows:
                assert "number" in row["message"]["args"]
                await _nothing()
            await session.execute(ARCHIVE, (PLAIN_QUEUE, [row["msg_id"] for row in rows]))


async def _nothing() -> None:
    return None


def ways(url: str, gateway: str) -> list[Way]:
    direct = {"FAIRLEASE_DATABASE_URL": url}
    through = {"SUPABASE_URL": gateway, "SUPABASE_SECRET_KEY": KEY}
    told = (Metrics().observe, log_event)
    return [
        *(Way("direct", n, direct) for n in IN_FLIGHT),
        *(Way("direct, metrics and logs", n, direct, told) for n in IN_FLIGHT),
        *(Way("through the gateway", n, through) for n in IN_FLIGHT),
    ]


def fill(admin: psycopg.Connection, queue: str, messages: int, orgs: int) -> None:
    admin.execute(f"truncate pgmq.q_{queue}, pgmq.a_{queue}, fairlease.message_state")
    admin.execute(
        f"insert into pgmq.q_{queue} (vt, message, headers) "
        "select clock_timestamp(), jsonb_build_object('method', 'nothing', 'args', "
        "jsonb_build_object('number', i)), jsonb_build_object('x-org', 'org' || i %% %s) "
        "from generate_series(1, %s) i",
        (orgs, messages),
    )
    admin.execute(f"vacuum (analyze) pgmq.q_{queue}, pgmq.a_{queue}, fairlease.seats")


def seconds_of(
    admin: psycopg.Connection, queue: str, what: Any, options: argparse.Namespace
) -> float:
    """Run the coroutine that `what` makes; every message must have arrived."""
    fill(admin, queue, options.messages, options.orgs)
    begun = time.perf_counter()
    asyncio.run(what())
    seconds = time.perf_counter() - begun
    row = admin.execute(f"select count(*) from pgmq.a_{queue}").fetchone()
    assert row == (options.messages,), row
    return seconds


@contextmanager
def gateway(database_url: str) -> Iterator[str]:
    command = [sys.executable, "-m", "fairlease.local.gateway", "--database-url", database_url]
    command += ["--schemas", "public,pgmq_public", "--api-keys", f"{KEY}=service_role"]
    command += ["--jwt-secret", "of-the-benchmark-at-least-32-bytes-long"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[1]
        finally:
            process.terminate()


def measure(url: str, found: Sequence[Way], options: argparse.Namespace) -> dict[str, Any]:
    rates: dict[tuple[str, int], list[float]] = {}
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"select pgmq.create('{PLAIN_QUEUE}')")
        admin.execute(f"select fairlease.attach_queue('{QUEUE}')")
        for number in range(options.rounds + 1):
            for name, in_flight, queue, what in [
                ("bare loop", BARE_BATCH, PLAIN_QUEUE, lambda: bare(url)),
                *((way.name, way.in_flight, QUEUE, way.drain) for way in found),
            ]:
                rate = options.messages / seconds_of(admin, queue, what, options)
                if number:  # the first round warms up
                    rates.setdefault((name, in_flight), []).append(rate)
    base = statistics.median(rates["bare loop", BARE_BATCH])
    return {
        "rates": [
            {
                "way": name,
                "in_flight": in_flight,
                "per_second": round(statistics.median(each), 1),
                "ratio": round(statistics.median(each) / base, 3),
            }
            for (name, in_flight), each in rates.items()
        ]
    }


def say(document: dict[str, Any]) -> None:
    for line in document["rates"]:
        print(
            f"{line['way']:26} {line['in_flight']:4} in flight {line['per_second']:9.0f}/s "
            f"{line['ratio']:6.2f} x the bare loop"
        )
    for line in document["pickup"]:
        print(f"picked up, {line['when']:22} {line['median_ms']:7.1f} ms, p95 {line['p95_ms']:.1f}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=10_000, help="of each run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--orgs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    with migrated_server() as url:
        authenticator = url.replace("postgres@", "authenticator@", 1)
        with gateway(authenticator) as gateway_url:
            document = measure(url, ways(url, gateway_url), options)
        document["pickup"] = pickup_milliseconds(url)
    say(document)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "end_to_end.json").write_text(json.dumps(document, indent=1) + "\n")
    [ratio] = [
        line["ratio"]
        for line in document["rates"]
        if (line["way"], line["in_flight"]) == ("direct", 100)
    ]
    print(f"\nbar ({BAR} x, direct, 100 in flight): {'met' if ratio >= BAR else 'MISSED'}")
    print(f"written: {options.out / 'end_to_end.json'}")
    return int(ratio < BAR)


if __name__ == "__main__":
    sys.exit(main())
