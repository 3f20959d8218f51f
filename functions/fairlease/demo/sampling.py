"""Looks at the database while the demonstration runs: who waits, who runs, who holds a slot."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING, LiteralString, Self

import psycopg

from fairlease.demo.load import LOW, URGENT
from fairlease.demo.utilisation import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fairlease.clock import Clock

PERIOD_SECONDS = 0.05

_QUERY: LiteralString = """
with live as (
  select fairlease.org_of(message, headers) as org, vt, read_ct from pgmq.q_{urgent}
  union all
  select fairlease.org_of(message, headers), vt, read_ct from pgmq.q_{low}
), gone as (
  select fairlease.org_of(message, headers) as org from pgmq.a_{urgent}
  union all
  select fairlease.org_of(message, headers) from pgmq.a_{low}
)
select org, 'waiting', count(*) from live where vt <= clock_timestamp() group by org
union all
select org, 'in_flight', count(*) from live
where vt > clock_timestamp() and read_ct > 0 group by org
union all
select org, 'slots', count(*) from fairlease.seats
where expires_at > clock_timestamp() group by org
union all
select org, 'done', count(*) from gone group by org
"""


class Sampler:
    """Samples in a thread of its own until the context ends; `samples` grows meanwhile."""

    def __init__(self, url: str, clock: Clock) -> None:
        self.samples: list[Sample] = []
        self._clock = clock
        self._connection = psycopg.connect(url, autocommit=True)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-sampler", daemon=True)

    def __enter__(self) -> Self:
        self.samples.append(self._sample())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._connection.close()

    def wait_until(self, reached: Callable[[Sample], bool], timeout_seconds: float) -> bool:
        """Sample until `reached` holds for the latest sample; False past the timeout."""
        deadline = self._clock.monotonic() + timeout_seconds
        while self._clock.monotonic() < deadline:
            if reached(self.samples[-1]):
                return True
            if not self._thread.is_alive():
                return False
            self._stopping.wait(PERIOD_SECONDS)
        return False

    def _run(self) -> None:
        while not self._stopping.wait(PERIOD_SECONDS):
            self.samples.append(self._sample())

    def _sample(self) -> Sample:
        at = self._clock.monotonic()
        rows = self._connection.execute(_QUERY.format(urgent=URGENT, low=LOW)).fetchall()
        return sample_of(at, rows)


def sample_of(at: float, rows: Iterable[Sequence[object]]) -> Sample:
    """Rows of `(org, what, count)`."""
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for org, what, count in rows:
        counts[str(what)][str(org)] = int(str(count))
    return Sample(at, counts["waiting"], counts["in_flight"], counts["slots"], counts["done"])
