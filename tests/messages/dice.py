"""A plan from a seed: few names and round numbers, so that things meet; and a smaller one."""

from __future__ import annotations

import dataclasses
import random
from typing import TYPE_CHECKING, Any

from .plan import CALLS, DEEDS, FAULTS, MISHAPS, NEVER_RUN, Fault, Job, Mishap, Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Around a lease of 45 and a visibility of 60 seconds.
LENGTHS = (0.0, 0.0, 1.0, 20.0, 70.0)
INSTANTS = (0.0, 0.0, 5.0, 30.0, 61.0, 100.0, 300.0)
DELAYS = (1.0, 12.0, 50.0, 65.0, 130.0)
# Nothing goes wrong, so that more is expected; and of many calls, every second goes well.
SHARE_OF_CALM = 0.1
SHARE_OF_GOOD_CALLS = 0.5
# Brings down every process that handles it.
POISON = ("die",) * 8
SHARE_OF_POISON = 0.07


def plan_of(seed: int) -> Plan:
    dice = random.Random(seed)
    pick = dice.choice
    calm = dice.random() < SHARE_OF_CALM
    return Plan(
        jobs=tuple(_job(dice) for _ in range(dice.randint(1, 6))),
        faults={} if calm else {call: _faults(dice) for call in CALLS},
        mishaps=() if calm else tuple(_mishap(dice) for _ in range(pick((0, 1, 2, 4)))),
        workers=pick((1, 1, 2)),
        drain_concurrency=pick((1, 2, 3)),
        max_crashes=pick((1, 2)),
        continuous_refill=pick((1, 1, 0)),
        max_attempts_of_queue=pick((None, None, None, 2)),
        on_success=pick(("archive", "archive", "archive", "delete")),
    )


def _job(dice: random.Random) -> Job:
    pick = dice.choice
    return Job(
        at=pick(INSTANTS),
        org=pick(("a", "a", "b")),
        seconds=pick(LENGTHS),
        deeds=POISON if dice.random() < SHARE_OF_POISON else _deeds(dice),
        key=pick((None, "k", "k", "l")),
        delay_seconds=pick((0, 0, 0, 40)),
        once=pick((False, True)),
        never_runs=pick(NEVER_RUN) if dice.random() < 0.1 else None,
    )


def _deeds(dice: random.Random) -> tuple[str, ...]:
    return tuple(dice.choice((*DEEDS, "dead")) for _ in range(dice.choice((0, 0, 1, 2, 4))))


def _faults(dice: random.Random) -> tuple[Fault, ...]:
    good = SHARE_OF_GOOD_CALLS
    return tuple(
        Fault("none" if dice.random() < good else dice.choice(FAULTS), dice.choice(DELAYS))
        for _ in range(dice.choice((0, 0, 1, 2, 4, 8)))
    )


def _mishap(dice: random.Random) -> Mishap:
    return Mishap(dice.choice((*MISHAPS, "replay", "replay")), dice.choice(INSTANTS) + 2.5)


def shrink(plan: Plan, is_red: Callable[[Plan], bool]) -> Plan:
    """The same failure with as little as still shows it."""
    simpler = True
    while simpler:
        simpler = False
        for candidate in _simpler(plan):
            if is_red(candidate):
                plan, simpler = candidate, True
                break
    return plan


def _simpler(plan: Plan) -> Iterator[Plan]:
    for name in ("jobs", "mishaps"):
        for fewer in _fewer(getattr(plan, name)):
            yield dataclasses.replace(plan, **{name: fewer})
    for call, faults in plan.faults.items():
        for fewer in ((), *_calmer(faults)) if faults else ():
            yield dataclasses.replace(plan, faults={**plan.faults, call: fewer})
    for at, job in enumerate(plan.jobs):
        for changes in _plainer(job):
            jobs = (*plan.jobs[:at], dataclasses.replace(job, **changes), *plan.jobs[at + 1 :])
            yield dataclasses.replace(plan, jobs=jobs)
    for field in dataclasses.fields(plan):
        plain = field.default
        if plain is not dataclasses.MISSING and getattr(plan, field.name) != plain:
            yield dataclasses.replace(plan, **{field.name: plain})


def _fewer(entries: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for at in range(len(entries)):
        yield entries[:at] + entries[at + 1 :]


def _calmer(faults: tuple[Fault, ...]) -> Iterator[tuple[Fault, ...]]:
    if faults[-1].what == "none":
        yield faults[:-1]
    for at, fault in enumerate(faults):
        if fault.what != "none":
            yield (*faults[:at], Fault("none"), *faults[at + 1 :])


def _plainer(job: Job) -> Iterator[dict[str, Any]]:
    for field in dataclasses.fields(job):
        plain = field.default
        if plain is not dataclasses.MISSING and getattr(job, field.name) != plain:
            yield {field.name: plain}
    for fewer in _fewer(job.deeds):
        yield {"deeds": fewer}
