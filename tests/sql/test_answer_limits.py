"""What an answer cannot hold, and what a call may not say of a queue that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from sql.worker import done, outcome

if TYPE_CHECKING:
    from sql.conftest import Hire, Send

# An answer holds 256 MiB: three of these do not fit.
HUGE = 96 * 1024 * 1024
BREAK = """
create function public.broken() returns trigger language plpgsql as
  $$ begin perform from public.not_there; return new; end $$;
create trigger broken before update on pgmq.q_jobs for each row execute function public.broken();
"""


def sizes_of_claim(session: psycopg.Connection, outcomes: list[Any], n: int) -> dict[str, Any]:
    """The claim in the server, without its messages crossing the wire."""
    row = session.execute(
        "select json_build_object('status', a -> 'status', 'settled', a -> 'settled', "
        "'messages', json_array_length(a -> 'messages')) "
        "from pgmq_public.settle_and_claim('jobs', 'h1', %s, %s, 120, 60, 1, 8) a",
        (Jsonb(outcomes), n),
    ).fetchone()
    assert row is not None
    return row[0]


def hidden(session: psycopg.Connection) -> int:
    row = session.execute("select count(*) from pgmq.q_jobs where vt > now()").fetchone()
    assert row is not None
    return row[0]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_messages_too_large_for_one_answer_come_in_several(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a")
    [first] = hire().claim().deliveries
    connection.execute(
        "select pgmq.send('jobs', jsonb_build_object('org', 'a', 'x', repeat('x', %s))) "
        "from generate_series(1, 3)",
        (HUGE,),
    )
    answer = sizes_of_claim(connection, [done(first)], 8)
    assert answer["status"] == "claimed"
    assert answer["messages"] == 2
    assert [item["result"] for item in answer["settled"]] == ["applied"]
    assert hidden(connection) == 2


def test_a_trigger_that_misses_a_table_does_not_make_messages_gone(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    send("a", "a")
    [delivery] = hire().claim().deliveries
    connection.execute(BREAK)
    with pytest.raises(psycopg.errors.RaiseException, match=r"not_there.*mend the trigger"):
        hire().settle([outcome("retry", delivery, after_ms=0)])
    with pytest.raises(psycopg.errors.RaiseException, match=r"not_there.*mend the trigger"):
        hire().plain()
    assert hire().settle_only(done(delivery)) == ["applied"]
