"""What an upgrade owes to queues that are there already, and to who may call what meanwhile."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from fairlease.admin.migrate import migrate
from skew.levels import FIRST_WITH_ATTACH, LEVELS, NEWEST, QUEUE, attach, reach

pytestmark = pytest.mark.slow

CLAIM = "pgmq_public.claim_org_slot_and_read(%s, 60, 1, 'h', 60, 1, 8)"
OPTIONAL = ("settle_and_claim", "heartbeat_org_slot", "send_messages")
EVERYTHING = ("claim_org_slot_and_read", "renew_org_slot", "release_org_slot", *OPTIONAL)


def functions_of_the_queue(session: psycopg.Connection, queue: str) -> dict[str, str]:
    """Name without the queue's number, and body without its tables."""
    rows = session.execute(
        """
        select split_part(p.proname, '_', 2), pg_get_functiondef(p.oid), q.id, q.table_name
        from fairlease.queues q
        join pg_proc p on p.proname ~ format('^q%%s_', q.id)
          and p.pronamespace = 'fairlease'::regnamespace
        where q.queue = %s
        """,
        [queue],
    ).fetchall()
    return {
        name: text.replace(f"q{number}_", "q_").replace(table[2:], "NAME")
        for name, text, number, table in rows
    }


@pytest.mark.parametrize("level", [LEVELS[0], FIRST_WITH_ATTACH, "20261201002200"])
def test_a_queue_attached_before_an_upgrade_has_all_that_a_new_one_has(
    pgmq_database: str, level: str
) -> None:
    reach(pgmq_database, level)
    migrate(pgmq_database)
    with psycopg.connect(pgmq_database, autocommit=True) as session:
        session.execute("select fairlease.attach_queue('afterwards')")
        before = functions_of_the_queue(session, QUEUE)
        assert before == functions_of_the_queue(session, "afterwards")
        assert len(before) >= 12


def test_a_message_claimed_before_an_upgrade_can_be_settled_after_it(pgmq_database: str) -> None:
    reach(pgmq_database, FIRST_WITH_ATTACH)
    with psycopg.connect(pgmq_database, autocommit=True) as session:
        session.execute('select pgmq.send(%s, \'{"org": "a"}\')', [QUEUE])
        claim = f"select msg_id, read_ct from {CLAIM}"
        claimed: Any = session.execute(claim, [QUEUE]).fetchone()
        migrate(pgmq_database)
        settled: Any = session.execute(
            "select pgmq_public.settle_and_claim(%s, 'h', jsonb_build_array("
            "jsonb_build_object('id', %s::bigint, 'ct', %s::int, 'do', 'done')), 0, 0, 0, 0, 0)",
            [QUEUE, *claimed],
        ).fetchone()
        assert settled[0]["settled"] == [{"id": claimed[0], "result": "applied"}]


def test_at_no_level_may_anyone_but_a_worker_call_what_workers_call(pgmq_database: str) -> None:
    for level in LEVELS:
        migrate(pgmq_database, to=level)
        with psycopg.connect(pgmq_database, autocommit=True) as session:
            rows = session.execute(
                """
                select p.proname, has_function_privilege('service_role', p.oid, 'execute'),
                  has_function_privilege('anon', p.oid, 'execute')
                from pg_proc p where p.pronamespace = 'pgmq_public'::regnamespace
                """
            ).fetchall()
        assert {row[1:] for row in rows} == {(True, False)}, (level, rows)
    assert level == NEWEST
    assert {row[0] for row in rows} >= set(EVERYTHING)


def test_a_queue_is_attached_again_at_any_level_without_harm(pgmq_database: str) -> None:
    reach(pgmq_database, LEVELS[0])
    for level in LEVELS:
        migrate(pgmq_database, to=level)
        with psycopg.connect(pgmq_database, autocommit=True) as session:
            attach(session, level)
            session.execute("select pgmq.send(%s, '{}')", [QUEUE])
            claim = f"select status from {CLAIM}"
            assert session.execute(claim, [QUEUE]).fetchone() == ("claimed",), level
