"""What a claim costs, as a ratio to `pgmq.read(queue, vt, 1)` on the same table in the same run.

    python -m bench.claim [--quick] [--rounds N] [--out FOLDER] [--binaries FOLDER]

Prints a table, and writes claim.json and claim.png. Ends with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from bench import shapes
from bench.chart import draw_claims
from bench.server import Stopwatch, migrated_server

if TYPE_CHECKING:
    from bench.shapes import Shape

CLAIM = "select * from pgmq_public.claim_org_slot_and_read(%s, 120, 1, %s, 60, 1, %s)"
PINNED = "select * from pgmq_public.claim_org_slot_and_read(%s, 120, 1, %s, 60, 1, %s, %s)"
READ = "select * from pgmq.read(%s, 120, 1)"
BARS = {"pinned": 1.5, "unpinned": 3.0, "no_demand": 1.5, "no_capacity": 1.5}
# Enough to see the median, few enough that read's own hidden rows do not slow it down.
BLOCK = 25


@dataclass(frozen=True)
class Result:
    """Microseconds, medians, round trip included."""

    shape: str
    kind: str
    depth: int
    orgs: int
    read_us: float
    claim_us: float

    @property
    def ratio(self) -> float:
        return self.claim_us / self.read_us

    @property
    def within(self) -> bool:
        return self.ratio <= BARS[self.kind]


class Bench:
    def __init__(self, session: psycopg.Connection, rounds: int) -> None:
        self._session = session
        self._rounds = rounds
        self._watch = Stopwatch(session)

    def shape(self, shape: Shape) -> list[Result]:
        """Interleave read, claim, pinned claim, and a claim that finds the fleet full."""
        shape.build(self._session)
        self._round(shape)
        self._watch.forget()
        for number in range(self._rounds):
            if number % BLOCK == 0:
                self._restore(shape)
            self._round(shape)
        kinds = ["unpinned", "pinned", "no_capacity"] if shape.parts[0][0] else ["no_demand"]
        results = [self._result(shape, kind) for kind in kinds]
        self._free_slots()
        self._session.execute("select fairlease.detach_queue(%s)", (shape.queue,))
        self._session.execute("select pgmq.drop_queue(%s)", (shape.queue,))
        return results

    def find_unpaused(self, shape: Shape, blocked: int) -> tuple[int, int]:
        """Claims until the one org that may run was found, and the bar for it."""
        shape.build(self._session)
        bar = -(-blocked // 64) + 1
        for number in range(1, bar + 1):
            [first] = self._watch.call("probing", CLAIM, (shape.queue, "h1", 8))
            if first[0] == "claimed":
                return number, bar
        return bar + 1, bar

    def probing_us(self) -> float:
        return self._watch.median("probing")

    def _round(self, shape: Shape) -> None:
        self._watch.call("read", READ, (shape.queue,))
        rows = self._watch.call("unpinned", CLAIM, (shape.queue, "h1", 8))
        if rows[0][1] is None:
            self._watch.call("no_demand", CLAIM, (shape.queue, "h2", 8))
            return
        self._watch.call("read", READ, (shape.queue,))
        self._watch.call("pinned", PINNED, (shape.queue, "h1", 8, rows[0][1]))
        self._watch.call("no_capacity", CLAIM, (shape.queue, "h2", 1))

    def _restore(self, shape: Shape) -> None:
        self._session.execute(
            f"update pgmq.q_{shape.queue} set vt = enqueued_at - interval '1 s', read_ct = 0, "
            "last_read_at = null where read_ct > 0"
        )
        if "dead" not in shape.name:
            self._session.execute(f"vacuum pgmq.q_{shape.queue}")

    def _free_slots(self) -> None:
        self._session.execute(
            "select pgmq_public.release_org_slot(queue, holder) from fairlease.seats "
            "where holder is not null"
        )

    def _result(self, shape: Shape, kind: str) -> Result:
        return Result(
            shape.name,
            kind,
            shape.depth,
            shape.orgs,
            round(self._watch.median("read"), 1),
            round(self._watch.median(kind), 1),
        )


def main() -> int:
    options = _options()
    depths = [0, 1000, 5000, 100_000] if options.quick else [0, 1000, 5000, 100_000, 1_000_000]
    orgs = [1, 10, 1000] if options.quick else [1, 10, 1000, 10_000]
    scale = 1000 if options.quick else 10_000
    results: list[Result] = []
    with migrated_server(options.binaries) as url, psycopg.connect(url, autocommit=True) as session:
        bench = Bench(session, options.rounds)
        for shape in [*shapes.grid(depths, orgs), *shapes.hard(scale)]:
            for result in bench.shape(shape):
                results.append(result)
                _print(result)
        claims, bar = bench.find_unpaused(shapes.paused(scale), scale - 1)
    found = {"orgs": scale, "claims": claims, "bar": bar, "claim_us": round(bench.probing_us(), 1)}
    print(
        f"{scale} orgs have work, all but one paused: found by claim {claims} of at most {bar}, "
        f"{found['claim_us']:.0f} us a claim"
    )
    options.out.mkdir(parents=True, exist_ok=True)
    document = {
        "results": [{**asdict(result), "ratio": round(result.ratio, 3)} for result in results],
        "paused": found,
        "bars": BARS,
    }
    (options.out / "claim.json").write_text(json.dumps(document, indent=1) + "\n")
    draw_claims(document, options.out / "claim.png")
    missed = [result for result in results if not result.within]
    print(f"bars: {'missed ' + str(len(missed)) if missed or claims > bar else 'all met'}")
    print(f"written: {options.out / 'claim.json'}, {options.out / 'claim.png'}")
    return int(bool(missed) or claims > bar)


def _print(result: Result) -> None:
    verdict = "" if result.within else "  MISSED"
    print(
        f"{result.shape:38} {result.kind:12} {result.claim_us:8.0f} us  "
        f"read {result.read_us:8.0f} us  {result.ratio:5.2f} x  (bar {BARS[result.kind]}){verdict}",
        flush=True,
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="up to 100,000 rows and 1,000 orgs")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--binaries", type=Path, help="another Postgres' folder of programs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
