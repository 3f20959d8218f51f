"""What happened in a storm, and what should not have."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

# Without these, calm weather would pass for a storm.
MUST_HAPPEN = (
    "claimed",
    "topped up",
    "renewed",
    "released",
    "heartbeats",
    "lapsed slots met",
    "settled applied",
    "settled already",
    "settled lost",
    "settled gone",
    "vanished with a lease",
    "backends terminated",
    "rolled back by death",
    "no_capacity",
    "org_capacity",
    "samples of slots",
    "samples at the fleet cap",
    "samples at an org's cap",
    "samples of accounts",
)


@dataclass
class Tally:
    seconds: float
    counts: Counter[str] = field(default_factory=Counter)
    breaches: list[str] = field(default_factory=list)
    applied: set[tuple[str, int, int]] = field(default_factory=set)
    most_live: int = 0
    deadlocks: int = 0
    sent: int = 0
    drained: int = 0

    def breach(self, what: str) -> None:
        self.breaches.append(what)

    def settled(self, queue: str, delivery: tuple[int, int], result: str) -> None:
        """One delivery is settled once, whoever settles it and however often."""
        self.counts[f"settled {result}"] += 1
        if result == "applied":
            if (queue, *delivery) in self.applied:
                self.breach(f"{queue} {delivery} was applied twice")
            self.applied.add((queue, *delivery))
        elif result == "refused":
            self.breach(f"{queue} {delivery} was refused")

    def idle(self) -> list[str]:
        """What should have happened and did not."""
        return [name for name in MUST_HAPPEN if not self.counts[name]]

    @property
    def calm(self) -> bool:
        return not self.breaches and not self.deadlocks and self.sent == self.drained

    def line(self) -> str:
        rate = self.counts["claimed"] / self.seconds if self.seconds else 0
        deaths = sum(self.counts[name] for name in MUST_HAPPEN if "terminated" in name)
        deaths += self.counts["vanished with a lease"] + self.counts["rolled back by death"]
        return (
            f"storm of {self.seconds:.0f} s: {len(self.breaches)} breaches, "
            f"{self.deadlocks} deadlocks, {self.sent - self.drained} of {self.sent} messages lost; "
            f"{self.counts['claimed']} claims ({rate:.0f}/s), "
            f"{self.counts['settled applied']} settles, {deaths} deaths, "
            f"{self.counts['samples of slots']} samples, at most {self.most_live} slots live"
        )

    def json(self) -> dict[str, Any]:
        return {
            "seconds": round(self.seconds, 1),
            "breaches": self.breaches[:50],
            "breach_count": len(self.breaches),
            "deadlocks": self.deadlocks,
            "sent": self.sent,
            "drained": self.drained,
            "most_live": self.most_live,
            "counts": dict(sorted(self.counts.items())),
            "did_not_happen": self.idle(),
        }
