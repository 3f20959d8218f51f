"""`ctx.once` through whole runs: a worker dies by SIGKILL, and another gets its message again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from psycopg.types.json import Jsonb

from crash.processes import working
from crash.worker_process import Orders

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

QUEUE = "charges"
KNOBS = {"org_slot_max_per_org": 2, "idle_budget_seconds": 0}


def slow(*death: object) -> object:
    return pytest.param(*death, marks=pytest.mark.slow)


#: Where the first worker dies, whether the effect is in a transaction of its own, and how often
#: it has happened in the end.
DEATHS = [
    ("before settle", False, 1),
    slow("after effect", False, 1),
    # The word was given and the effect not done: without a transaction it is at most once.
    slow("before effect", False, 0),
    ("before settle", True, 1),
    slow("after effect", True, 1),
    ("before effect", True, 1),
]


@pytest.fixture
def session(connection: psycopg.Connection) -> Iterator[psycopg.Connection]:
    connection.execute("create table charges (id int generated always as identity)")
    connection.execute("select fairlease.attach_queue(%s)", [QUEUE])
    return connection


@pytest.mark.parametrize(("point", "in_transaction", "times"), DEATHS)
def test_the_effect_of_a_message_that_is_delivered_twice_happens_once(
    session: psycopg.Connection, database: str, point: str, in_transaction: bool, times: int
) -> None:
    body = {"method": "charge", "org": "a", "args": {"in_transaction": in_transaction}}
    session.execute("select pgmq.send(%s, %s)", [QUEUE, Jsonb(body)])

    with working(Orders(database, QUEUE, stop_at=point, knobs=KNOBS)) as first:
        first.wait_for("at", point=point)
        first.kill()
    # As after its visibility timeout.
    session.execute(f"update pgmq.q_{QUEUE} set vt = now()")
    with working(Orders(database, QUEUE, knobs=KNOBS)) as second:
        second.wait_for("report")
        second.read_all()

    assert [each.all_of("start")[0]["attempt"] for each in (first, second)] == [1, 2]
    assert len(second.all_of("end")) == 1
    found = session.execute(
        f"select (select count(*) from charges), (select count(*) from pgmq.a_{QUEUE}),"
        f" (select count(*) from pgmq.q_{QUEUE})"
    )
    assert found.fetchone() == (times, 1, 0)
