"""Every knob, once: its range, its fallback, its fail-safe, its unit and what it does.

The documentation table and the chart's schema are generated from these annotations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict

from fairlease.model import WORST_MESSAGE_SECONDS

PREFIX = "FAIRLEASE_"
# What is left of the reserve once the worst message has ended: settling, releasing, exiting.
EXIT_MARGIN_SECONDS = 30
SHORTEST_BUDGET_SECONDS = 120


def longest_run_budget_seconds(isolate_lifetime_ms: int) -> int:
    """Seconds of an isolate's life in which it may claim: one worst message must still end."""
    reserve_seconds = WORST_MESSAGE_SECONDS + EXIT_MARGIN_SECONDS
    return max(SHORTEST_BUDGET_SECONDS, isolate_lifetime_ms // 1000 - reserve_seconds)


@dataclass(frozen=True, slots=True)
class Knob:
    """The annotation of one knob.

    `maximum` None has no upper bound; `bounded_by_lifetime` derives maximum and fallback from
    the isolate's lifetime. `widens`: a larger value means more concurrency or a longer hold on
    work, so that a rejected value must not yield more than an absent one. `of_isolate`: one value
    for the whole process, so that `function.toml` cannot set it.
    """

    minimum: int
    maximum: int | None
    fallback: int
    unit: str
    sentence: str
    fail_safe: int | None = None
    widens: bool = False
    bounded_by_lifetime: bool = False
    of_isolate: bool = False
    alias: str | None = None

    def maximum_at(self, isolate_lifetime_ms: int) -> int | None:
        if self.bounded_by_lifetime:
            return longest_run_budget_seconds(isolate_lifetime_ms)
        return self.maximum

    def fallback_at(self, isolate_lifetime_ms: int) -> int:
        if self.bounded_by_lifetime:
            return longest_run_budget_seconds(isolate_lifetime_ms)
        return self.fallback


class Knobs(BaseModel):
    """The values in effect; made by `load_settings`, which keeps them consistent."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    drain_concurrency: Annotated[
        int, Knob(1, 256, 4, "messages", "Messages that one run keeps in flight.", widens=True)
    ]
    visibility_timeout_seconds: Annotated[
        int,
        Knob(
            30,
            1800,
            120,
            "seconds",
            "How long a claimed message stays hidden between two heartbeats.",
            widens=True,
        ),
    ]
    org_slot_global_cap: Annotated[
        int,
        Knob(0, 1024, 8, "slots", "Slots of the whole fleet; 0 claims nothing.", widens=True),
    ]
    org_slot_max_per_org: Annotated[
        int,
        Knob(1, 64, 1, "slots", "Slots of one org, unless org_limits says otherwise.", widens=True),
    ]
    org_in_flight_ceiling: Annotated[
        int,
        Knob(
            1,
            4096,
            16,
            "messages",
            "Messages of one org in flight over the fleet: slots per org times concurrency.",
            widens=True,
        ),
    ]
    org_slot_lease_ttl_seconds: Annotated[
        int,
        Knob(
            45,
            300,
            60,
            "seconds",
            "Life of a slot without renewal; bounds how long the loop may go unyielding, not the "
            "longest message.",
            widens=True,
        ),
    ]
    org_slot_continuous_refill: Annotated[
        int,
        Knob(
            0,
            1,
            1,
            "0 or 1",
            "The kill switch: 0 drains batch at a time.",
            fail_safe=0,
            widens=True,
        ),
    ]
    org_slot_run_budget_seconds: Annotated[
        int,
        Knob(
            SHORTEST_BUDGET_SECONDS,
            None,
            longest_run_budget_seconds(400_000),
            "seconds",
            "How far into the isolate's life runs may claim; at most the lifetime less 150 s.",
            fail_safe=SHORTEST_BUDGET_SECONDS,
            widens=True,
            bounded_by_lifetime=True,
        ),
    ]
    org_slot_stream_quantum_refills: Annotated[
        int,
        Knob(
            1,
            64,
            8,
            "refills",
            "Batches on one org before another is considered.",
            widens=True,
        ),
    ]
    idle_budget_seconds: Annotated[
        int, Knob(0, 3600, 50, "seconds", "How long a run waits for work before it returns.")
    ]
    poll_busy_ms: Annotated[
        int, Knob(10, 10_000, 100, "milliseconds", "Pause of a polling loop after work.")
    ]
    poll_idle_seconds: Annotated[
        int, Knob(1, 300, 5, "seconds", "First pause of a polling loop without work.")
    ]
    poll_max_seconds: Annotated[
        int, Knob(1, 3600, 60, "seconds", "Longest pause of a polling loop.")
    ]
    max_stall_seconds: Annotated[
        int,
        Knob(
            30,
            86_400,
            900,
            "seconds",
            "Time without progress after which a run is given up; at most 3/4 of the lifetime.",
        ),
    ]
    handler_timeout_seconds: Annotated[
        int, Knob(1, 86_400, 110, "seconds", "Time for one message, unless its handler sets one.")
    ]
    max_crashes: Annotated[
        int,
        Knob(1, 100, 5, "deliveries", "Deliveries that may end their worker before dead letter."),
    ]
    message_size_limit_bytes: Annotated[
        int,
        Knob(
            1024,
            67_108_864,
            1_048_576,
            "bytes",
            "Largest message, headers included, that `ctx.send` and `fairlease send` let through.",
            widens=True,
        ),
    ]
    isolate_lifetime_ms: Annotated[
        int,
        Knob(
            150_000,
            None,
            400_000,
            "milliseconds",
            "Age at which the host process is killed.",
            widens=True,
            of_isolate=True,
            alias="EDGE_WORKER_TIMEOUT_MS",
        ),
    ]

    @property
    def refills_continuously(self) -> bool:
        """False under the kill switch. Above zero, so that a wider range keeps its meaning."""
        return self.org_slot_continuous_refill > 0

    @property
    def isolate_lifetime_seconds(self) -> int:
        return self.isolate_lifetime_ms // 1000


@cache
def knob_table() -> dict[str, Knob]:
    """Every knob by its name in lower case, in the order of the documentation."""
    found = {
        name: next(m for m in field.metadata if isinstance(m, Knob))
        for name, field in Knobs.model_fields.items()
    }
    return dict(found)


def env_of(name: str) -> str:
    return PREFIX + name.upper()
