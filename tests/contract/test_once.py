"""`ctx.once`: an effect at most once per key, over each transport, and how keys are forgotten."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import psycopg
import pytest

from fairlease.clock import SystemClock
from fairlease.errors import CallRefused, InvalidInput, TransientError
from fairlease.messages.context import Context

if TYPE_CHECKING:
    from fairlease.rpc import Rpc

SOON = 10.0


def context(rpc: Rpc, queue: str, lose: int = 0) -> Context:
    """Its first `lose` answers are lost after they took effect."""
    left = [lose]

    async def take(queue: str, key: str, token: str) -> bool:
        taken = await rpc.once(queue, key, token, timeout_seconds=SOON)
        if left[0]:
            left[0] -= 1
            raise TransientError("lost")
        return taken

    return Context("a", queue, "m", 1, 1, SystemClock(), 0.0, inbox=take)


async def test_a_key_is_taken_once_whoever_asks(rpc: Rpc, queue: str) -> None:
    assert await context(rpc, queue).once("charge:42")
    assert not await context(rpc, queue).once("charge:42")
    assert await context(rpc, queue).once("charge:43")


async def test_a_lost_answer_is_asked_for_again_and_the_effect_is_not_lost(
    rpc: Rpc, queue: str
) -> None:
    assert await context(rpc, queue, lose=2).once("k")
    assert not await context(rpc, queue).once("k")
    with pytest.raises(TransientError):
        await context(rpc, queue, lose=3).once("j")


@pytest.mark.parametrize("key", ["", "k" * 513, "a\x00", "\ud800"])
async def test_a_key_that_cannot_be_stored_is_refused_before_the_wire(
    rpc: Rpc, queue: str, key: str
) -> None:
    with pytest.raises(InvalidInput, match=r"^key: "):
        await context(rpc, queue).once(key)


async def test_the_database_refuses_what_it_cannot_keep(rpc: Rpc, queue: str) -> None:
    for asked, said in [((queue, "", "t"), "key must have"), (("nowhere", "k", "t"), "nowhere")]:
        with pytest.raises(CallRefused, match=said):
            await rpc.once(*asked, timeout_seconds=SOON)


def test_a_second_taker_waits_for_the_first_and_has_the_key_if_that_one_fails(
    database: str, connection: psycopg.Connection, queue: str
) -> None:
    call = "select pgmq_public.once(%s, 'k')"
    for ending, expected in (("rollback", True), ("commit", False)):
        heard: list[bool] = []
        with psycopg.connect(database) as first, psycopg.connect(database) as second:
            first.execute(call, [queue])

            def ask(session: psycopg.Connection = second, to: list[bool] = heard) -> None:
                to.append(session.execute(call, [queue]).fetchone()[0])  # type: ignore[index]

            asking = threading.Thread(target=ask)
            asking.start()
            waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
            while connection.execute(waits).fetchone() == (0,):
                assert asking.is_alive()
            first.execute(ending)
            asking.join(SOON)
            assert heard == [expected]
            second.rollback()


def test_keys_are_forgotten_after_the_retention_of_their_queue_or_thirty_days(
    connection: psycopg.Connection, queue: str
) -> None:
    connection.execute("select fairlease.attach_queue('short', retention => '1 day')")
    connection.execute(
        "insert into fairlease.inbox (queue, key, taken_at) select q, age::text, now() - age "
        "from unnest(array[%s, 'short']) q, unnest(array[interval '12 hours', '2 days', "
        "'29 days', '31 days']) age",
        [queue],
    )
    connection.execute("select fairlease.maintain(2)")
    assert connection.execute("select count(*) from fairlease.inbox").fetchone() == (6,)
    connection.execute("select fairlease.maintain()")
    kept = connection.execute("select queue, key from fairlease.inbox order by 1, taken_at")
    assert kept.fetchall() == [
        (queue, "29 days"),
        (queue, "2 days"),
        (queue, "12:00:00"),
        ("short", "12:00:00"),
    ]
