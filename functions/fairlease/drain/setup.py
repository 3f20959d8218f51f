"""What one run is given. Everything below takes it, and nothing else reaches outside."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlease.events import fan_out

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from fairlease.clock import Clock
    from fairlease.drain.budget import RunBudget
    from fairlease.events import Observer
    from fairlease.messages.registry import Handler
    from fairlease.rpc import Rpc
    from fairlease.settings import Knobs

# A call that takes longer is given up, unless the lease or the isolate leaves less (seconds).
LONGEST_CALL_SECONDS = 10.0
SHORTEST_CALL_SECONDS = 0.5


@dataclass(slots=True)
class RunSetup:
    """One run: its identity, its work, its bounds and its ports. Queues in priority order.

    Frozen but for `knobs`, which the run narrows once for a database without heartbeats.
    """

    run_id: str
    name: str
    queues: tuple[str, ...]
    handlers: Mapping[str, Handler]
    knobs: Knobs
    budget: RunBudget
    rpc: Rpc
    clock: Clock
    dice: random.Random
    observe: Observer = field(default=lambda _event: None)
    # Set by whoever knows of new work: an idle run looks at once. Its own stop sets it too.
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    cancel_on_lost_lease: bool = False
    # Whether an operator set the visibility timeout; a mode without heartbeats then respects it.
    visibility_is_set: bool = False
    # Ends the process, for the reason given, where a run cannot end otherwise.
    end_process: Callable[[str], None] = field(default=lambda _reason: None)

    def __post_init__(self) -> None:
        self.observe = fan_out([self.observe])

    def call_seconds(self) -> float:
        """The total deadline of a call made now: shorter than the lease and the isolate's rest."""
        lease_share = self.knobs.org_slot_lease_ttl_seconds / 4
        isolate_rest = self.budget.isolate_end - self.clock.monotonic()
        return max(SHORTEST_CALL_SECONDS, min(LONGEST_CALL_SECONDS, lease_share, isolate_rest / 2))
