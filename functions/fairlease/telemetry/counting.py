"""Numbers that grow: cheap to add to, put into the form of a metric only when somebody looks."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

OTHER = "other"
ORGS_SHOWN = 50
# Orgs that compete for a label; beyond, those with fewest messages are forgotten.
ORGS_RANKED = 1_000
# Counts kept by org until they are put under a label: the bound of their memory.
MOST_PENDING = 10_000
LABEL_CHARACTERS = 120


@dataclass(slots=True)
class Histogram:
    """Counts by upper bound, in the unit of the bounds."""

    bounds: tuple[float, ...]
    total: float = 0.0
    counts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        """(upper bound, values up to it), as the exposition formats have it."""
        names = [*(str(bound) for bound in self.bounds), "+Inf"]
        return list(zip(names, accumulate(self.counts), strict=True))


@dataclass(slots=True)
class CountsByOrg:
    """Counts of (labels, org), shown for the orgs with most and for `other`.

    What is counted gets its label when somebody looks, so the orgs that are largest by then have
    one; what was counted under `other` stays there, so that no counter ever falls.
    """

    _pending: Counter[tuple[tuple[str, ...], str]] = field(default_factory=Counter)
    _shown: Counter[tuple[tuple[str, ...], str]] = field(default_factory=Counter)
    _ranked: Counter[str] = field(default_factory=Counter)
    _top: frozenset[str] = frozenset()

    def add(self, labels: tuple[str, ...], org: str) -> None:
        self._pending[labels, org] += 1
        if len(self._pending) > MOST_PENDING:
            self._fold()

    def look(self) -> Iterator[tuple[tuple[str, ...], str, int]]:
        """(labels, org or `other`, count)."""
        self._fold()
        for (labels, org), count in self._shown.items():
            yield labels, org, count

    def _fold(self) -> None:
        pending, self._pending = self._pending, Counter()
        for (_, org), count in pending.items():
            self._ranked[org] += count
        self._rank()
        for (labels, org), count in pending.items():
            self._shown[labels, org if org in self._top else OTHER] += count

    def _rank(self) -> None:
        """Between equals those that are shown already stay, or labels would come and go."""
        ranked = sorted(self._ranked, key=lambda org: (-self._ranked[org], org not in self._top))
        for forgotten in ranked[ORGS_RANKED:]:
            del self._ranked[forgotten]
        top = frozenset(ranked[:ORGS_SHOWN])
        fallen = self._top - top
        self._top = top
        for labels, org in [key for key in self._shown if key[1] in fallen and key[1] != OTHER]:
            del self._shown[labels, org]


def label(text: str) -> str:
    """As every format can carry it, short, and different for different long texts."""
    if len(text) > LABEL_CHARACTERS:
        mark = hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
        text = f"{text[: LABEL_CHARACTERS - 20]}...{mark}"
    return text.encode("utf-8", "backslashreplace").decode()
