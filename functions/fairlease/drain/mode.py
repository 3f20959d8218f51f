"""What this database turned out not to know.

One latch per function per run: the next run asks again, since a deploy may have finished.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlease.events import Degraded

if TYPE_CHECKING:
    from fairlease.events import Observer

INSTEAD = {
    "settle_and_claim": "plain claims; success is archived, everything else waits for its timeout",
    "heartbeat_org_slot": "slots are renewed alone; messages keep the timeout of their claim",
    "pin_org": "batch at a time",
}


@dataclass(slots=True)
class Mode:
    """`missing` holds the functions that this run no longer calls."""

    run_id: str
    observe: Observer
    missing: set[str] = field(default_factory=set)

    def knows(self, function: str) -> bool:
        return function not in self.missing

    def latch(self, function: str) -> None:
        if function not in self.missing:
            self.missing.add(function)
            self.observe(Degraded(self.run_id, function, INSTEAD[function]))
