from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .storm import storm

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

    Plant = Callable[[psycopg.Connection], None]


def one_seat_too_many(connection: psycopg.Connection) -> None:
    edit_function(connection, "fairlease.lock_free_seat", {
        "s.seat <= p_ask.global_cap": "s.seat <= p_ask.global_cap + 1",
        "+ v_above <= p_ask.global_cap": "+ v_above <= p_ask.global_cap + 1",
    })  # fmt: skip


def ordinals_without_their_lock(connection: psycopg.Connection) -> None:
    edit_function(connection, "fairlease.lock_ordinals", {
        "pg_try_advisory_xact_lock(hashtextextended(p_org, 1733))": "true",
    })  # fmt: skip


def settling_twice(connection: psycopg.Connection) -> None:
    edit_function(connection, "fairlease.judge_outcome", {
        "when p_state.closed_read_ct = p_outcome.ct then 'already'": "",
    })  # fmt: skip


def edit_function(connection: psycopg.Connection, name: str, changes: dict[str, str]) -> None:
    row = connection.execute("select pg_get_functiondef(%s::regproc)", [name]).fetchone()
    assert row is not None
    text = row[0]
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    connection.execute(text)


@pytest.mark.parametrize("seconds", [4, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.timeout(600)
async def test_48_sessions_break_no_cap_lose_nothing_and_never_deadlock(
    database: str, seconds: float
) -> None:
    tally = await storm(database, seconds, seed=1)
    assert tally.breaches == []
    assert tally.deadlocks == 0
    assert tally.drained == tally.sent
    assert tally.idle() == []


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (one_seat_too_many, "slots live, the cap is"),
        (ordinals_without_their_lock, "UniqueViolation"),
        (settling_twice, "was applied twice"),
    ],
)
async def test_a_planted_fault_shows_in_the_storm(database: str, plant: Plant, words: str) -> None:
    tally = await storm(database, 8, seed=2, plant=plant)
    assert any(words in breach for breach in tally.breaches)
