"""What a claim reads does not depend on how much waits, nor on what the statistics believe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import psycopg

    from plans.conftest import Buffers, Fill

UNPINNED = "select * from pgmq_public.claim_org_slot_and_read('jobs', 120, 1, %s, 600, 1, %s)"
PINNED = "select * from pgmq_public.claim_org_slot_and_read('jobs', 120, 1, %s, 600, 1, %s, %s)"
READ = "select * from pgmq.read('jobs', 120, 1)"
# Measured: 30 and 67 on a small queue. A scan of 5,000 messages is hundreds.
PINNED_BAR = 60
UNPINNED_BAR = 120
NOTHING_BAR = 30


def warm(session: psycopg.Connection) -> str:
    """Plans made, catalogue read; returns the org held by h1."""
    for _ in range(3):
        row = session.execute(UNPINNED, ("h1", 8)).fetchone()
    assert row is not None
    for _ in range(3):
        session.execute(PINNED, ("h1", 8, row[1] or "none"))
        session.execute(UNPINNED, ("h2", 1))
    return row[1] or "none"


SHAPES = {
    "1000 of 1": (1000, "'o'"),
    "20000 of 1": (20_000, "'o'"),
    "20000 of 4000": (20_000, "'o' || i % 4000"),
    "20000, nearly all of one": (20_000, "case when i % 1000 = 0 then 'o' || i else 'whale' end"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_claims_touch_few_pages_at_any_depth(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection, name: str
) -> None:
    rows, org = SHAPES[name]
    fill(rows, org=org)
    held = warm(connection)
    assert buffers(PINNED, "h1", 8, held) <= PINNED_BAR
    assert buffers(UNPINNED, "h1", 8) <= UNPINNED_BAR
    assert buffers(UNPINNED, "h2", 1) <= NOTHING_BAR


def test_an_empty_queue_and_a_full_fleet_cost_next_to_nothing(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection
) -> None:
    fill(0, org="'o'")
    warm(connection)
    assert buffers(UNPINNED, "h1", 8) <= NOTHING_BAR
    assert buffers(PINNED, "h1", 8, "o") <= NOTHING_BAR


def test_plans_made_while_the_queue_was_empty_stay_right(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection
) -> None:
    fill(1, org="'o'")
    held = warm(connection)
    connection.execute("analyze pgmq.q_jobs")
    warm(connection)
    fill(20_000, org="'o' || i % 100", analyze=False)
    held = warm(connection)
    assert buffers(PINNED, "h1", 8, held) <= PINNED_BAR
    assert buffers(UNPINNED, "h1", 8) <= UNPINNED_BAR


def test_statistics_that_know_one_org_only_do_not_mislead(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection
) -> None:
    fill(5000, org="'o'")
    fill(15_000, org="'p' || i % 3000", analyze=False)
    connection.execute("set plan_cache_mode = force_custom_plan")
    held = warm(connection)
    assert buffers(PINNED, "h1", 8, held) <= PINNED_BAR
    assert buffers(UNPINNED, "h1", 8) <= UNPINNED_BAR


def test_a_callers_settings_have_no_say(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection
) -> None:
    connection.execute(
        "set random_page_cost = 1000; set effective_cache_size = '1MB'; set jit = on; "
        "set jit_above_cost = 0; set plan_cache_mode = force_custom_plan; set enable_seqscan = on"
    )
    fill(20_000, org="'o' || i % 100")
    held = warm(connection)
    assert buffers(PINNED, "h1", 8, held) <= PINNED_BAR
    assert buffers(UNPINNED, "h1", 8) <= UNPINNED_BAR


def test_work_behind_many_waiting_orgs_is_found_by_its_time(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection
) -> None:
    fill(5000, org="'o' || i", visible="interval '1 day'")
    fill(10, org="'zz'")
    assert warm(connection) == "zz"
    # 64 orgs are looked at, 4 or 5 pages each, before the oldest message names the one.
    assert buffers(UNPINNED, "h1", 8) <= UNPINNED_BAR + 64 * 6
    assert buffers(PINNED, "h1", 8, "zz") <= PINNED_BAR


def test_a_claim_looks_at_no_more_than_64_blocked_orgs(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection
) -> None:
    fill(2000, org="'o' || i")
    connection.execute(
        "insert into fairlease.org_limits (org, paused) select 'o' || i, true "
        "from generate_series(1, 2000) i"
    )
    warm(connection)
    assert buffers(UNPINNED, "h1", 8) <= UNPINNED_BAR + 64 * 20


def test_dead_tuples_are_passed_over_after_the_first_look(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection
) -> None:
    fill(20_000, org="'a' || i % 10")
    fill(100, org="'z'")
    connection.execute("delete from pgmq.q_jobs where msg_id <= 20000")
    warm(connection)
    assert buffers(PINNED, "h1", 8, "z") <= PINNED_BAR


def test_a_claim_touches_a_few_times_the_pages_of_pgmqs_own_read(
    fill: Fill, buffers: Buffers, connection: psycopg.Connection
) -> None:
    fill(20_000, org="'o' || i % 100")
    held = warm(connection)
    connection.execute(READ)
    read = buffers(READ)
    assert buffers(PINNED, "h1", 8, held) <= 3 * read
    assert buffers(UNPINNED, "h1", 8) <= 6 * read
