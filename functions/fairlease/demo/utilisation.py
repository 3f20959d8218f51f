"""Pure: the share of its slot that an org really used, from samples of the database."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the database, at a monotonic instant in seconds; counts are per org."""

    at: float
    waiting: dict[str, int]
    in_flight: dict[str, int]
    slots: dict[str, int]
    done: dict[str, int]


#: A step function: from each instant (monotonic seconds) on, so many are in flight.
Series = list[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, in monotonic seconds."""

    start: float
    end: float


def resident(samples: Sequence[Sample], org: str) -> list[Span]:
    """When the org's slot is held and it has visible work: the time that could be used."""
    return [
        Span(before.at, after.at)
        for before, after in pairwise(samples)
        if before.slots.get(org, 0) > 0 and before.waiting.get(org, 0) > 0
    ]


def utilisation(series: Series, spans: Sequence[Span], n: int) -> float:
    """In-flight seconds over `n` times the seconds of `spans`; 0 where there are none."""
    available = n * sum(span.end - span.start for span in spans)
    used = sum(in_flight_seconds(series, span) for span in spans)
    return used / available if available else 0.0


def in_flight_seconds(series: Series, span: Span) -> float:
    """The area under the step function within the span."""
    area = 0.0
    for (at, count), (until, _) in pairwise([*series, (math.inf, 0)]):
        area += count * max(0.0, min(until, span.end) - max(at, span.start))
    return area
