from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings

from .database import Database
from .harness import clone
from .model import Model
from .replay import QUEUES, Replay, Step
from .scenarios import SCENARIOS
from .steps import sequences

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlease.local.postgres import LocalPostgres

WITNESSED = {
    *("claimed", "no_demand", "org_capacity", "no_capacity"),
    *("cause fleet_full", "cause org_limit", "cause paused", "cause circuit"),
    *(f"settled {result}" for result in ("applied", "already", "lost", "gone")),
    *("heard extended", "heard lost", "heard gone", "a delivery uncounted"),
    *("refused n", "refused holder", "refused pin_org", "refused queue_name"),
}


@pytest.fixture(scope="module")
def allocator(postgres: LocalPostgres, template: str) -> Iterator[Database]:
    """One for the module: every replay begins by emptying it."""
    with clone(postgres, template) as connection:
        database = Database(connection, QUEUES)
        database.install()
        yield database


@pytest.mark.parametrize(
    "examples", [60, pytest.param(2000, marks=(pytest.mark.slow, pytest.mark.timeout(1200)))]
)
def test_the_database_answers_every_sequence_as_the_model_does(
    allocator: Database, examples: int
) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(sequences)
    def compare(steps: list[Step]) -> None:
        replay = Replay(Model(QUEUES), allocator)
        replay.run(steps)
        witnessed.update(replay.witnessed)

    witnessed: Counter[str] = Counter()
    compare()
    assert set(witnessed) >= WITNESSED, "the sequences have become too tame to prove anything"


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_database_keeps_the_rule_that(allocator: Database, name: str) -> None:
    Replay(Model(QUEUES), allocator).run(SCENARIOS[name])
