"""The burst that the drivers are compared by: 190 messages of one org, four at a time."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairlease.settings import load_settings
from fairlease.simulate.fixture import load_durations
from fairlease.simulate.fleet import play
from fairlease.simulate.scenario import Kill, Load, Scenario

if TYPE_CHECKING:
    from fairlease.settings import Knobs
    from fairlease.simulate.measure import Measured

CONCURRENCY = 4
QUANTUM = 8
SWEEP = (2, 4, 6, 8, 12, 16)
NO_QUANTUM = 1_000_000
BUSY, STARVED = "busy", "starved"
STARVED_BEHIND = 240
KILLED_AT_SECONDS = 480.0


def burst(**knobs: int) -> Scenario:
    """One run over the whole burst; `knobs` by their names in lower case."""
    return Scenario((Load(BUSY, load_durations()),), _knobs(**knobs))


def comparison() -> dict[str, Any]:
    """What `fairlease simulate --json` prints: the drivers, the sweep, stranding, starvation."""
    quantum = drivers()["quantum"]
    return {
        **{name: _row(play(scenario)) for name, scenario in drivers().items()},
        "sweep": {str(k): round(play(_plain(k)).utilisation, 4) for k in SWEEP},
        "stranded_without_budget": play(_killed(quantum, None)).stranded,
        "stranded_with_budget": play(_killed(quantum, _budget_seconds())).stranded,
        "starved_first_message_index": {
            "with_quantum": _starved_index(QUANTUM),
            "without_quantum": _starved_index(NO_QUANTUM),
        },
    }


def drivers() -> dict[str, Scenario]:
    """Batch at a time, refill without a quantum, refill with the one that doubles."""
    return {
        "batch": burst(org_slot_continuous_refill=0),
        "refill": burst(org_slot_stream_quantum_refills=NO_QUANTUM),
        "quantum": burst(org_slot_stream_quantum_refills=QUANTUM),
    }


def _plain(refills: int) -> Scenario:
    """Without the doubling of the quantum."""
    return replace(burst(org_slot_stream_quantum_refills=refills), longest_stretch=1)


def _killed(scenario: Scenario, budget_seconds: float | None) -> Scenario:
    kill = Kill(0, KILLED_AT_SECONDS)
    return replace(scenario, kills=(kill,), budget_seconds=budget_seconds)


def _starved_index(refills: int) -> int | None:
    """How many messages of a busy org start before the first of one that came with them."""
    durations = tuple(itertools.islice(itertools.cycle(load_durations()), STARVED_BEHIND))
    scenario = Scenario(
        (Load(BUSY, durations), Load(STARVED, (1.0,))),
        _knobs(org_slot_stream_quantum_refills=refills),
    )
    return next(org.first_index for org in play(scenario).orgs if org.org == STARVED)


def _budget_seconds() -> float:
    lifetime = {"FAIRLEASE_ISOLATE_LIFETIME_MS": str(round(KILLED_AT_SECONDS * 1000))}
    return float(load_settings(lifetime).knobs.org_slot_run_budget_seconds)


def _knobs(**changes: int) -> Knobs:
    return load_settings({}).knobs.model_copy(update={"drain_concurrency": CONCURRENCY, **changes})


def _row(measured: Measured) -> dict[str, float]:
    return {
        "utilisation": round(measured.utilisation, 4),
        "minutes": round(measured.minutes, 2),
        "claims": measured.claims,
    }
