from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings

from .database import Database
from .model import Model
from .replay import QUEUES, Replay, Step
from .scenarios import SCENARIOS
from .steps import sequences

if TYPE_CHECKING:
    import psycopg


@pytest.fixture
def allocator(connection: psycopg.Connection) -> Database:
    database = Database(connection, QUEUES)
    database.install()
    return database


@pytest.mark.parametrize(
    "examples", [60, pytest.param(5000, marks=(pytest.mark.slow, pytest.mark.timeout(1200)))]
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
        Replay(Model(QUEUES), allocator).run(steps)

    compare()


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_database_keeps_the_rule_that(allocator: Database, name: str) -> None:
    Replay(Model(QUEUES), allocator).run(SCENARIOS[name])
