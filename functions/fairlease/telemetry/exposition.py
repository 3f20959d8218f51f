"""What was counted, what is and what the database holds, as Prometheus reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

from fairlease.telemetry.counting import label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fairlease.model import QueueStats
    from fairlease.telemetry.counting import Histogram
    from fairlease.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Now:
    """What holds at this moment; every queue and function has its entry, also where it is 0.

    `stats` None: the database was not asked, or did not answer.
    """

    in_flight: Mapping[str, int] = field(default_factory=dict)
    slots_held: Mapping[str, int] = field(default_factory=dict)
    runs_active: Mapping[str, int] = field(default_factory=dict)
    slots_cap: int | None = None
    knob_issues: int = 0
    loop_lag_seconds: float = 0.0
    stats: Sequence[QueueStats] | None = None


def expose(metrics: Metrics, now: Now, accept: str = "") -> tuple[bytes, str]:
    """The body and its content type, in the format that `accept` asks for."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Snapshot(metrics, now))
    try:
        encode, content_type = choose_encoder(accept)
    except (LookupError, TypeError, ValueError):  # a version that is no number, in their words
        encode, content_type = choose_encoder("")
    return encode(registry), content_type


class _Snapshot(Collector):
    def __init__(self, metrics: Metrics, now: Now) -> None:
        self._metrics = metrics
        self._now = now

    def collect(self) -> Iterator[Metric]:
        yield from _counted(self._metrics)
        yield from _timed(self._metrics)
        yield from _held(self._now)
        if self._now.stats is not None:
            yield from _stored(self._now.stats)


def _counted(metrics: Metrics) -> Iterator[Metric]:
    by_org = (((*labels, org), count) for labels, org, count in metrics.messages.look())
    yield _counter("messages", "Messages by outcome.", "queue method outcome org", by_org)
    counters: tuple[tuple[str, str, str, Mapping[tuple[str, ...], int]], ...] = (
        ("deliveries", "Messages received.", "queue method crashed", metrics.deliveries),
        ("deliveries_lost", "Deliveries that became others'.", "queue", metrics.deliveries_lost),
        ("claims", "Claims answered.", "queue status", metrics.claims),
        ("heartbeats_failed", "Renewals that failed.", "queue", metrics.heartbeats_failed),
        ("runs", "Runs begun.", "function", metrics.runs),
        ("runs_degraded", "Runs without something.", "missing", metrics.runs_degraded),
    )
    for name, says, labels, counts in counters:
        yield _counter(name, says, labels, tuple(counts.items()))


def _timed(metrics: Metrics) -> Iterator[Metric]:
    timed: tuple[tuple[str, str, str, Mapping[tuple[str, ...], Histogram]], ...] = (
        ("handler", "Time in the handler.", "queue method", metrics.handler_seconds),
        ("queueing", "Time from being sent to being received.", "queue", metrics.queueing_seconds),
        ("claim", "Time for one claim.", "queue", metrics.claim_seconds),
    )
    for name, says, labels, histograms in timed:
        family = HistogramMetricFamily(f"fairlease_{name}_seconds", says, labels=labels.split())
        for values, histogram in tuple(histograms.items()):
            shown = [label(value) for value in values]
            family.add_metric(shown, histogram.cumulative(), sum_value=histogram.total)
        yield family


def _held(now: Now) -> Iterator[Metric]:
    yield _gauge("in_flight", "Messages worked on here.", "queue", now.in_flight)
    yield _gauge("slots_held", "Slots held here.", "queue", now.slots_held)
    yield _gauge("runs_active", "Runs in progress here.", "function", now.runs_active)
    single: dict[str, tuple[str, float]] = {
        "loop_lag_seconds": ("The event loop's worst delay.", now.loop_lag_seconds),
        "knob_issues": ("Settings that are not as written.", now.knob_issues),
    }
    if now.slots_cap is not None:
        single["slots_cap"] = ("Slots of the fleet.", now.slots_cap)
    for name, (says, value) in single.items():
        yield GaugeMetricFamily(f"fairlease_{name}", says, value=value)


def _stored(stats: Sequence[QueueStats]) -> Iterator[Metric]:
    depth = GaugeMetricFamily(
        "fairlease_queue_depth", "Messages by state.", labels=["queue", "state"]
    )
    for queue in stats:
        depth.add_metric([queue.queue, "ready"], queue.ready)
        depth.add_metric([queue.queue, "running"], queue.running)
        depth.add_metric([queue.queue, "delayed"], queue.delayed)
    yield depth
    ages = {queue.queue: queue.oldest_age_seconds for queue in stats}
    yield _gauge("queue_oldest_age_seconds", "How long the oldest has been due.", "queue", ages)
    dead = {queue.queue: queue.dead_letters for queue in stats}
    yield _gauge("dead_letters", "Dead letters.", "queue", dead)
    circuits = {queue.queue: queue.circuits_open for queue in stats}
    yield _gauge("circuits_open", "Open circuits that hold messages.", "queue", circuits)


def _counter(
    name: str, says: str, labels: str, counts: Iterable[tuple[tuple[str, ...], int]]
) -> Metric:
    family = CounterMetricFamily(f"fairlease_{name}", says, labels=labels.split())
    for values, count in counts:
        family.add_metric([label(value) for value in values], count)
    return family


def _gauge(name: str, says: str, by: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"fairlease_{name}", says, labels=[by])
    for value, number in values.items():
        family.add_metric([label(value)], number)
    return family
