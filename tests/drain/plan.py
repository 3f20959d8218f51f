"""A random scenario as data: made from a seed, and small enough to be shrunk and read."""

from __future__ import annotations

import random
from dataclasses import dataclass

from fairlease.settings import Knobs, load_settings, longest_run_budget_seconds
from fairlease.settings.cross_checks import cross_check

# After this instant nothing goes wrong any more, so that everything must come to its end.
CALM_AFTER_SECONDS = 500.0
# Plans in which nothing goes wrong: there, more is expected.
SHARE_OF_CALM = 0.15
QUEUES = ("urgent", "later")
DEFAULTS = load_settings({}).knobs

#: What a handler does in its first deliveries; afterwards it succeeds.
ILLS = (
    "raise",
    "retry_after",
    "snooze",
    "dead",
    "rate_limited",
    "base_exception",
    "keyboard_interrupt",
    "system_exit",
    "cancelled_error",
    "stop_iteration",
    "hang",
    "swallow",
    "swallow_thrice",
    "slow_cleanup",
    "block",
    "kill_process",
    "not_an_object",
    "unknown_method",
    "bad_arguments",
)

#: These take other messages with them: the whole process, or its clock.
ENDS_OTHERS = ("kill_process", "hang", "swallow", "swallow_thrice", "slow_cleanup", "block")
MILD = tuple(ill for ill in ILLS if ill not in ENDS_OTHERS)


@dataclass(frozen=True, slots=True)
class Job:
    """One message. `ill` None succeeds at once; else it misbehaves `times` times."""

    queue: str
    org: str
    at: float
    seconds: float
    ill: str | None = None
    times: int = 1


@dataclass(frozen=True, slots=True)
class Mishap:
    """`what` happens to a worker (or an org) at an instant, for some seconds where that fits."""

    what: str
    at: float
    worker: int = 0
    seconds: float = 0.0
    org: str = ""


@dataclass(frozen=True, slots=True)
class Weather:
    """Chances, of each call until the calm: see `network.py`."""

    lost: float = 0.0
    refused: float = 0.0
    unexpected: float = 0.0
    slow: float = 0.0
    late_renewals: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    knobs: Knobs
    workers: int
    jobs: tuple[Job, ...]
    mishaps: tuple[Mishap, ...]
    weather: Weather
    missing: frozenset[str] = frozenset()
    bounded: bool = False
    cancel_on_lost_lease: bool = False
    observers_raise: bool = False

    @property
    def is_calm(self) -> bool:
        """Nothing goes wrong but what handlers raise, and no isolate ends before its work."""
        ends = self.bounded or any(job.ill in ENDS_OTHERS for job in self.jobs)
        return not (self.mishaps or ends or self.missing) and self.weather == Weather()

    def describe(self) -> str:
        changed = {
            name: value
            for name, value in self.knobs.model_dump().items()
            if value != getattr(DEFAULTS, name)
        }
        flags = ("missing", "bounded", "cancel_on_lost_lease", "observers_raise")
        lines = [
            f"seed {self.seed}: {self.workers} workers, knobs {changed}, {self.weather}",
            ", ".join(f"{flag} {getattr(self, flag)}" for flag in flags),
            *(str(job) for job in self.jobs),
            *(str(mishap) for mishap in self.mishaps),
        ]
        return "\n  ".join(lines)


def plan_of(seed: int) -> Plan:
    dice = random.Random(seed)
    workers = dice.choice((1, 1, 2, 3, 4))
    orgs = [f"org-{k}" for k in range(dice.choice((1, 2, 3, 5)))]
    knobs = _knobs(dice)
    calm = dice.random() < SHARE_OF_CALM
    missing = frozenset() if calm else _missing(dice)
    if "heartbeat_org_slot" in missing:
        # What nobody extends must end within the timeout of its claim, or never will.
        knobs = knobs.model_copy(update={"visibility_timeout_seconds": 120})
    return Plan(
        seed=seed,
        knobs=knobs,
        workers=workers,
        jobs=_jobs(dice, knobs, orgs, MILD if calm else ILLS),
        mishaps=() if calm else _mishaps(dice, workers, orgs),
        weather=Weather() if calm else _weather(dice),
        missing=missing,
        bounded=not calm and dice.random() < 0.5,
        cancel_on_lost_lease=dice.random() < 0.2,
        observers_raise=dice.random() < 0.3,
    )


def _knobs(dice: random.Random) -> Knobs:
    chosen = {
        "drain_concurrency": dice.randint(1, 6),
        "org_slot_max_per_org": dice.choice((1, 1, 2)),
        "org_slot_global_cap": dice.choice((1, 2, 3, 8)),
        "org_slot_lease_ttl_seconds": dice.choice((45, 60, 90)),
        "visibility_timeout_seconds": dice.choice((60, 120, 120, 300)),
        "org_slot_continuous_refill": dice.choice((1, 1, 1, 0)),
        "org_slot_stream_quantum_refills": dice.choice((1, 2, 8)),
        "idle_budget_seconds": dice.choice((0, 10, 50)),
        "max_stall_seconds": dice.choice((60, 200, 900)),
        "handler_timeout_seconds": dice.choice((30, 110, 110)),
        "max_crashes": dice.choice((1, 3, 5)),
        "isolate_lifetime_ms": dice.choice((270_000, 400_000, 480_000)),
    }
    knobs = DEFAULTS.model_copy(update=chosen)
    lifetime_ms = knobs.isolate_lifetime_ms
    budget = {"org_slot_run_budget_seconds": longest_run_budget_seconds(lifetime_ms)}
    return cross_check(knobs.model_copy(update=budget), ())[0]


def _jobs(
    dice: random.Random, knobs: Knobs, orgs: list[str], ills: tuple[str, ...]
) -> tuple[Job, ...]:
    share_of_ills = dice.choice((0.0, 0.2, 0.6))
    longest = knobs.handler_timeout_seconds * 0.9
    return tuple(
        Job(
            queue=dice.choice((QUEUES[0], QUEUES[0], QUEUES[1])),
            org=dice.choice(orgs),
            at=dice.choice((0.0, 0.0, dice.uniform(0, 300))),
            seconds=dice.choice((0.0, 0.0, dice.uniform(0, 28), dice.uniform(0, longest))),
            ill=dice.choice(ills) if dice.random() < share_of_ills else None,
            times=dice.choice((1, 1, 2, 3)),
        )
        for _ in range(dice.choice((3, 10, 30, 60)))
    )


def _mishaps(dice: random.Random, workers: int, orgs: list[str]) -> tuple[Mishap, ...]:
    kinds = ("kill", "stop", "partition", "clock_jump", "calendar_jump", "pause", "deploy")
    found = []
    for _ in range(dice.choice((0, 0, 1, 3, 8))):
        what = dice.choice(kinds)
        at = dice.uniform(0, CALM_AFTER_SECONDS * 0.8)
        seconds = dice.choice((dice.uniform(0, 20), dice.uniform(0, 200)))
        found.append(Mishap(what, at, dice.randrange(workers), seconds, dice.choice(orgs)))
    return tuple(found)


def _weather(dice: random.Random) -> Weather:
    def chance() -> float:
        return dice.choice((0.0, 0.0, 0.02, 0.2))

    return Weather(chance(), chance(), chance() / 4, chance(), chance())


def _missing(dice: random.Random) -> frozenset[str]:
    if dice.random() < 0.7:
        return frozenset()
    functions = ("settle_and_claim", "heartbeat_org_slot", "pin_org")
    return frozenset(name for name in functions if dice.random() < 0.6)
