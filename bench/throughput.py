"""Claims with a message per second from 48 sessions that claim, settle, renew and release.

    python -m bench.throughput [--seconds S] [--rounds N] [--sessions N] [--out FOLDER]

Against (a) one advisory lock with a scan of the backlog, and (b) `pgmq.read` with the
same number of `archive` and `set_vt` calls; interleaved rounds, medians. Prints a table, and writes
throughput.json and throughput.png. Ends with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from bench.chart import draw_throughput
from bench.server import migrated_server

HERE = Path(__file__).parent
# What is run, and what it is called in the table.
SYSTEMS = {
    "ours": "fairlease, settle with claim",
    "separately": "fairlease, settle apart",
    "baseline": "one lock, scan",
    "pgmq": "pgmq alone",
}
BAR_BASELINE = 10.0
BAR_PGMQ = 0.8


@dataclass(frozen=True)
class Backlog:
    messages: int
    orgs: int
    # The bars hold for the deep one; the shallow one is reported.
    judged: bool
    # Of the seconds of a run: a backlog that is worked off before the end would level all rates.
    share: float = 1.0

    @property
    def name(self) -> str:
        return f"{self.messages} messages of {self.orgs} orgs"

    def per_org(self, sessions: int) -> int:
        """Slots an org may hold, so that every session finds one."""
        return -(-sessions // self.orgs) + 1


BACKLOGS = (Backlog(60_000, 40, judged=True), Backlog(3_000, 6, judged=False, share=0.2))


def fill(session: psycopg.Connection, backlog: Backlog) -> None:
    session.execute("truncate pgmq.q_load, pgmq.a_load, fairlease.message_state, baseline.slots")
    session.execute(
        "select fairlease.vacate(seat, 'released', now()) from fairlease.seats "
        "where holder is not null"
    )
    session.execute(
        "insert into pgmq.q_load (vt, message, headers) "
        "select clock_timestamp(), jsonb_build_object('method', 'm', 'args', "
        "jsonb_build_object('i', i)), jsonb_build_object('x-org', 'org' || i %% %s) "
        "from generate_series(1, %s) i",
        (backlog.orgs, backlog.messages),
    )
    session.execute("vacuum (analyze) pgmq.q_load, pgmq.a_load, fairlease.seats")


def run(sessions: list[psycopg.Connection], system: str, per_org: int, seconds: float) -> int:
    """All sessions at once; returns the claims that brought a message: an empty one is no work."""

    def one(number: int) -> int:
        call = f"call load.{system}('load', %s, %s, clock_timestamp() + %s * interval '1 s', 0, 0)"
        row = sessions[number].execute(call, (number, per_org, seconds)).fetchone()
        assert row is not None
        return int(row[1])

    with ThreadPoolExecutor(len(sessions)) as pool:
        return sum(pool.map(one, range(len(sessions))))


def measure(url: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    found = []
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("select fairlease.attach_queue('load')")
        for file in ("baseline.sql", "load.sql"):
            admin.execute((HERE / file).read_bytes())
        sessions = [psycopg.connect(url, autocommit=True) for _ in range(options.sessions)]
        for backlog in BACKLOGS:
            rates: dict[str, list[float]] = {system: [] for system in SYSTEMS}
            for number in range(options.rounds + 1):
                for system in SYSTEMS:
                    fill(admin, backlog)
                    seconds = backlog.share * (options.seconds if number else 1.0)
                    claims = run(sessions, system, backlog.per_org(options.sessions), seconds)
                    if number:
                        rates[system].append(claims / seconds)
            found.append(_summary(backlog, rates))
        for session in sessions:
            session.close()
    return found


def _summary(backlog: Backlog, rates: dict[str, list[float]]) -> dict[str, Any]:
    medians = {SYSTEMS[s]: round(statistics.median(rates[s]), 1) for s in SYSTEMS}
    ours = medians[SYSTEMS["ours"]]
    summary = {
        "name": backlog.name,
        "judged": backlog.judged,
        "claims_per_second": medians,
        "rounds": {SYSTEMS[s]: [round(rate, 1) for rate in rates[s]] for s in SYSTEMS},
        "times_baseline": round(ours / medians[SYSTEMS["baseline"]], 2),
        "times_pgmq": round(ours / medians[SYSTEMS["pgmq"]], 2),
    }
    print(f"\n{backlog.name}")
    for name, rate in medians.items():
        print(f"  {name:32} {rate:9.0f} claims/s")
    print(f"  {summary['times_baseline']} x the old design, {summary['times_pgmq']} x pgmq alone")
    return summary


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="of each run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=48)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--binaries", type=Path, help="another Postgres' folder of programs")
    options = parser.parse_args()
    with migrated_server(options.binaries) as url:
        backlogs = measure(url, options)
    options.out.mkdir(parents=True, exist_ok=True)
    document = {
        "sessions": options.sessions,
        "backlogs": backlogs,
        "bars": {"times_baseline": BAR_BASELINE, "times_pgmq": BAR_PGMQ},
    }
    (options.out / "throughput.json").write_text(json.dumps(document, indent=1) + "\n")
    draw_throughput(document, options.out / "throughput.png")
    met = all(
        b["times_baseline"] >= BAR_BASELINE and b["times_pgmq"] >= BAR_PGMQ
        for b in backlogs
        if b["judged"]
    )
    print(f"\nbars ({BAR_BASELINE} x, {BAR_PGMQ} x): {'met' if met else 'MISSED'}")
    print(f"written: {options.out / 'throughput.json'}, {options.out / 'throughput.png'}")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
