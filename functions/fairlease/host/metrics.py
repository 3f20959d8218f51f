"""What `/metrics` answers: what this isolate counted and holds, and what the database says."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlease.errors import RpcError
from fairlease.host.engine import DrainRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fairlease.clock import Clock
    from fairlease.drain.run import Drain
    from fairlease.host.functions import FunctionFolder
    from fairlease.host.runs import Runs
    from fairlease.model import QueueStats
    from fairlease.rpc import Upkeep
    from fairlease.telemetry.loop_lag import LoopLag
    from fairlease.telemetry.metrics import Metrics

log = logging.getLogger("fairlease.host")

STATS_FRESH_SECONDS = 15.0
# Less than a scraper waits.
STATS_TIMEOUT_SECONDS = 5.0


@dataclass(slots=True)
class QueueStatsCache:
    """Asks the database at most once in 15 s, whoever asks and whatever it answers."""

    database: Callable[[], Upkeep | None]
    clock: Clock
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _known: tuple[QueueStats, ...] | None = None
    _known_until: float = float("-inf")
    _failing: bool = False

    async def read(self) -> tuple[QueueStats, ...] | None:
        """None where nobody answers: what is not known must not look as if nothing had changed."""
        async with self._lock:
            if self.clock.monotonic() >= self._known_until:
                self._known = await self._ask()
                self._known_until = self.clock.monotonic() + STATS_FRESH_SECONDS
            return self._known

    async def _ask(self) -> tuple[QueueStats, ...] | None:
        database = self.database()
        if database is None:
            return None
        try:
            stats = await database.queue_stats(timeout_seconds=STATS_TIMEOUT_SECONDS)
        except RpcError as error:
            if not self._failing:
                log.warning("no queue metrics: %s", error)
            self._failing = True
            return None
        self._failing = False
        return stats


@dataclass(slots=True)
class MetricsPage:
    """Renders the page; nothing of it is computed before somebody asks."""

    functions: Mapping[str, FunctionFolder]
    runs: Runs
    metrics: Metrics
    lag: LoopLag
    stats: QueueStatsCache
    slots_cap: int | None
    knob_issues: int

    async def render(self, accept: str) -> tuple[bytes, str]:
        """The body and its content type."""
        # Imported here: an isolate that nobody scrapes does without.
        from fairlease.telemetry.exposition import Now, expose  # noqa: PLC0415

        stats = await self.stats.read()
        queues = [queue for folder in self.functions.values() for queue in folder.queues]
        drains = [run.drain for run in self.runs.live.values() if isinstance(run, DrainRun)]
        now = Now(
            in_flight=_counts(queues, _in_flight(drains)),
            slots_held=_counts(queues, (d.lease.queue for d in drains if d.lease.queue)),
            runs_active=_counts(self.functions, self.runs.live),
            slots_cap=self.slots_cap,
            knob_issues=self.knob_issues,
            loop_lag_seconds=max(self.lag.take(), self.metrics.take_loop_blocked()),
            stats=stats,
        )
        return expose(self.metrics, now, accept)


def _in_flight(drains: Iterable[Drain]) -> list[str]:
    return [flight.queue for drain in drains for flight in drain.in_flight.running]


def _counts(names: Iterable[str], found: Iterable[str]) -> dict[str, int]:
    """How often each was found, 0 included."""
    return {**dict.fromkeys(names, 0), **Counter(iter(found))}
