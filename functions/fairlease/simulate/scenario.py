"""What is simulated: a fleet, its work, and its mishaps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlease.drain.quantum import LONGEST_STRETCH
from fairlease.settings import load_settings

if TYPE_CHECKING:
    from fairlease.settings import Knobs


@dataclass(frozen=True, slots=True)
class Load:
    """The messages of one org: how long each takes, and when all are sent (seconds)."""

    org: str
    durations: tuple[float, ...]
    at_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Kill:
    """The isolate of this worker is killed at this instant; a poke starts the next one."""

    worker: int
    at_seconds: float


@dataclass(frozen=True, slots=True)
class Skew:
    """A worker whose clocks are off by so many seconds."""

    worker: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """Without `poke_seconds` each worker is poked once and no isolate follows a killed one.

    A finite `lifetime_seconds` is known to the engine and kills each isolate at that age;
    `budget_seconds` None is a run without a budget. `longest_stretch` 1 leaves the quantum as it
    is. `handler_timeout_seconds` None takes the knob.
    """

    loads: tuple[Load, ...]
    knobs: Knobs = field(default_factory=lambda: load_settings({}).knobs)
    workers: int = 1
    call_seconds: float = 0.02
    poke_seconds: float | None = None
    lifetime_seconds: float = math.inf
    budget_seconds: float | None = None
    handler_timeout_seconds: float | None = None
    kills: tuple[Kill, ...] = ()
    skews: tuple[Skew, ...] = ()
    longest_stretch: int = LONGEST_STRETCH
    seed: int = 0
    # A fleet that has not drained its work by then never will.
    horizon_seconds: float = 14 * 86_400.0
