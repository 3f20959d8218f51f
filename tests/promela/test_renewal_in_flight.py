"""The one interleaving that only the search found, played in Postgres.

A renewal that read the clock in time and has not committed when its lease runs out: whoever counts
now sees a lapsed row, and would take it for a free place that soon is live again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

CLOCK = """
create schema clock;
create table clock.hand (at timestamptz not null);
insert into clock.hand values ('2031-01-01Z');
create or replace function fairlease.now_() returns timestamptz
language sql volatile parallel safe set search_path = ''
as $$ select h.at from clock.hand h $$;
"""
CLAIM = (
    "select status from pgmq_public.claim_org_slot_and_read"
    "('race', 600, 1, %s, 10, %s::int, %s::int)"
)
LIVE = "select count(*) from fairlease.seats s where s.expires_at > fairlease.now_()"


@pytest.fixture
def prepared(connection: psycopg.Connection) -> psycopg.Connection:
    """Three holders of one org are live, with leases of ten seconds; work is left."""
    connection.execute(CLOCK)
    connection.execute("select fairlease.attach_queue('race')")
    for _ in range(9):
        connection.execute("""select pgmq.send('race', '{"org": "a"}')""")
    for holder in ("one", "two", "three"):
        assert claim(connection, holder, 8, 8) == "claimed"
    return connection


@pytest.fixture
def renewal(prepared: psycopg.Connection, database: str) -> Iterator[psycopg.Connection]:
    """A session whose renewal of the third slot is under way; then the lease runs out."""
    with psycopg.connect(database) as session:
        for holder in ("two", "three"):
            row = session.execute(
                "select pgmq_public.renew_org_slot('race', %s, 60)", [holder]
            ).fetchone()
            assert row == (True,)
        prepared.execute("update clock.hand set at = at + interval '10 seconds'")
        yield session


def claim(session: psycopg.Connection, holder: str, per_org: int, cap: int) -> str:
    return str(session.execute(CLAIM, [holder, per_org, cap]).fetchall()[0][0])


def test_a_renewal_in_flight_counts_against_a_lowered_fleet_cap(
    prepared: psycopg.Connection, renewal: psycopg.Connection
) -> None:
    assert claim(prepared, "late", 8, 2) == "no_capacity"
    renewal.commit()
    assert prepared.execute(LIVE).fetchall() == [(2,)]


def test_a_renewal_in_flight_counts_against_a_lowered_cap_of_the_org(
    prepared: psycopg.Connection, renewal: psycopg.Connection
) -> None:
    assert claim(prepared, "late", 2, 8) in ("org_capacity", "no_capacity")
    renewal.commit()
    assert prepared.execute(LIVE).fetchall() == [(2,)]


def test_a_lapsed_slot_that_nobody_renews_is_free(prepared: psycopg.Connection) -> None:
    prepared.execute("update clock.hand set at = at + interval '10 seconds'")
    assert claim(prepared, "late", 2, 2) == "claimed"
    assert claim(prepared, "later", 2, 2) == "claimed"
    assert claim(prepared, "latest", 2, 2) == "no_capacity"
