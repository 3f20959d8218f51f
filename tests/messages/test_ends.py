"""Whatever handlers, networks, platforms and operators do: each message ends once, as it should."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from contract.api import KEY, gateway
from fairlease.transports.postgres import PostgresRpc
from fairlease.transports.postgrest import PostgrestRpc

from .database import RealDatabase, opened
from .dice import plan_of, shrink
from .ends import play

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlease.local.postgres import LocalPostgres

    from .plan import Plan

# As many as fit on a busy machine, and at least so many.
SECONDS = 4.0
LEAST = 30
#: What thousands of sequences must have met; without these, nothing is proven.
WITNESSED = {
    *(f"settled {result}" for result in ("applied", "already", "lost", "gone")),
    *("done", "retry", "snooze", "give_back", "dead"),
    *("uncounted", "crashed", "key live", "replayed", "replay refused", "discarded", "cancelled"),
    "heartbeat too late",
}


@pytest.fixture(scope="module")
def real(module_database: str) -> Iterator[RealDatabase]:
    with opened(module_database, lambda: PostgresRpc(module_database, connections=1)) as database:
        yield database


def check(seed: int, database: RealDatabase, witnessed: Counter[str]) -> None:
    def is_red(plan: Plan) -> bool:
        return bool(play(plan, database, Counter()))

    plan = plan_of(seed)
    if play(plan, database, witnessed):
        smaller = shrink(plan, is_red)
        pytest.fail(
            f"seed {seed}, shrunk: {smaller}\n" + "\n".join(play(smaller, database, Counter()))
        )


def test_every_message_ends_once_and_as_it_should(real: RealDatabase) -> None:
    until = time.monotonic() + SECONDS
    seed = 0
    while seed < LEAST or time.monotonic() < until:
        check(seed, real, Counter())
        seed += 1


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_thousands_of_sequences_end_as_well(real: RealDatabase) -> None:
    witnessed: Counter[str] = Counter()
    for seed in range(10_000, 12_000):
        check(seed, real, witnessed)
    assert {name for name, count in witnessed.items() if count} >= WITNESSED, witnessed


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_they_end_over_the_gateway_too(postgres: LocalPostgres, database: str) -> None:
    with (
        gateway(postgres, database) as url,
        opened(database, lambda: PostgrestRpc(url, KEY)) as far,
    ):
        for seed in range(20_000, 20_100):
            check(seed, far, Counter())
