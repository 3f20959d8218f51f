from __future__ import annotations

import dataclasses
import time

import pytest

from fairlease.simulate.loop import run_virtually

from .plan import plan_of
from .scenarios import play, play_world, shrink

# Several hundred seeds on an idle machine; as many as fit on a busy one.
SECONDS = 4.0
FIRST_SEED = 100_000


def test_random_fleets_breach_no_cap_lose_nothing_and_leave_nothing_behind() -> None:
    until = time.monotonic() + SECONDS
    seed = FIRST_SEED
    while time.monotonic() < until:
        plan = plan_of(seed)
        broken = play(plan)
        assert not broken, f"{plan.describe()}\n" + "\n".join(broken)
        seed += 1
    assert seed - FIRST_SEED >= 10


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_thousands_of_random_fleets_hold_as_well() -> None:
    for seed in range(200_000, 203_000):
        plan = plan_of(seed)
        broken = play(plan)
        assert not broken, f"{plan.describe()}\n" + "\n".join(broken)


def test_a_stopped_process_starts_no_run_beside_the_handlers_that_it_leaves_behind() -> None:
    assert play(plan_of(11670)) == []


def test_a_seed_always_plays_the_same_scenario() -> None:
    first, second = (run_virtually(play_world(plan_of(8))) for _ in range(2))

    assert first.plan == second.plan
    assert first.starts == second.starts != {}
    assert [len(isolate.wire.calls) for isolate in first.born] == [
        len(isolate.wire.calls) for isolate in second.born
    ]


def test_a_failure_shrinks_to_what_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a settle that says "done" whatever the handler did."""
    plan = next(p for p in map(plan_of, range(1000)) if any(j.ill == "dead" for j in p.jobs))
    calm = dataclasses.replace(plan, mishaps=(), bounded=False)
    monkeypatch.setattr("tests.drain.scenarios.play", _fails_for_a_dead_letter)

    small = shrink(calm)

    assert [job.ill for job in small.jobs] == ["dead"]
    assert small.mishaps == ()


def _fails_for_a_dead_letter(plan: object) -> list[str]:
    return ["broken"] if any(job.ill == "dead" for job in plan.jobs) else []  # type: ignore[attr-defined]
