from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import psycopg
from psycopg.types.json import Jsonb

from race.sessions import Call

if TYPE_CHECKING:
    from collections.abc import Iterator


SETTLE = "select pgmq_public.settle_and_claim('order', %s, %s, 0, 1, 1, 1, 1) -> 'settled'"


@contextlib.contextmanager
def sessions(database: str, count: int) -> Iterator[list[psycopg.Connection]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(psycopg.connect(database, autocommit=True)) for _ in range(count)
        ]


def settle(session: psycopg.Connection, holder: str, *outcomes: tuple[int, str]) -> list[str]:
    said = [{"id": number, "ct": 1, "do": verb} for number, verb in outcomes]
    answer = session.execute(SETTLE, [holder, Jsonb(said)]).fetchall()[0][0]
    return [row["result"] for row in answer]


def test_messages_are_locked_by_id_whatever_becomes_of_them(
    connection: psycopg.Connection, database: str
) -> None:
    """The storm met it: what is done was locked before what is retried, so two could cross."""
    connection.execute("select fairlease.attach_queue('order')")
    connection.execute("""select pgmq.send('order', '{"org": "a"}') from generate_series(1, 3)""")
    connection.execute(
        "select pgmq_public.claim_org_slot_and_read('order', 600, 3, 'first', 600, 1, 1)"
    )
    with sessions(database, 3) as (blocker, one, other):
        blocker.execute("begin")
        blocker.execute("select from pgmq.q_order where msg_id = 1 for update")
        waits = Call(connection, one).start(
            settle, one, "one", (3, "done"), (1, "retry"), (2, "retry")
        )
        waits.seen_waiting()
        crosses = Call(connection, other).start(settle, other, "other", (2, "done"), (3, "retry"))
        with contextlib.suppress(AssertionError):
            crosses.seen_waiting()
        blocker.execute("commit")
        assert sorted(waits.result() + crosses.result()).count("applied") == 3
    row = connection.execute(
        "select deadlocks from pg_stat_database where datname = current_database()"
    ).fetchone()
    assert row == (0,)
