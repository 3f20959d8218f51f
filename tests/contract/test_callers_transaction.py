"""Sends and keys on a connection of the caller's own: there with its commit, gone with the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from fairlease import (
    NewMessage,
    once_within,
    once_within_async,
    send_within,
    send_within_async,
)
from fairlease.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

MESSAGES = [
    NewMessage({"n": 2**63, "t": "it's: %s :n {x} \U0001f600"}, org="Acme"),
    NewMessage({"n": 2}, headers={"h": "v"}),
]


@pytest.fixture(params=["psycopg", "psycopg-dicts", "connection", "session", "scoped"])
def caller(request: pytest.FixtureRequest, database: str, queue: str) -> Iterator[Any]:
    if request.param.startswith("psycopg"):
        with psycopg.connect(database) as connection:
            if request.param == "psycopg-dicts":
                connection.row_factory = dict_row  # type: ignore[assignment]
            yield connection
        return
    engine = create_engine(database.replace("postgresql://", "postgresql+psycopg://"))
    makers = {
        "connection": engine.connect,
        "session": lambda: Session(engine),
        "scoped": lambda: scoped_session(sessionmaker(engine)),
    }
    made = makers[request.param]()
    yield made
    made.close()
    engine.dispose()


@pytest.fixture(params=["psycopg", "connection", "session"])
async def caller_async(
    request: pytest.FixtureRequest, database: str, queue: str
) -> AsyncIterator[Any]:
    if request.param == "psycopg":
        async with await psycopg.AsyncConnection.connect(database) as connection:
            yield connection
        return
    engine = create_async_engine(database.replace("postgresql://", "postgresql+psycopg://"))
    made: Any = AsyncSession(engine)
    if request.param == "connection":
        await made.close()
        made = await engine.connect()
    yield made
    await made.close()
    await engine.dispose()


def stored(connection: psycopg.Connection, queue: str) -> list[Any]:
    return connection.execute(
        f"select message, headers from pgmq.q_{queue} order by msg_id"
    ).fetchall()


def test_what_is_sent_is_there_with_the_commit_and_gone_with_the_rollback(
    caller: Any, queue: str, connection: psycopg.Connection
) -> None:
    send_within(caller, queue, MESSAGES)
    assert stored(connection, queue) == []
    caller.rollback()
    assert stored(connection, queue) == []
    sent = send_within(caller, queue, MESSAGES, 60)
    caller.commit()
    assert len(sent.ids) == 2
    assert stored(connection, queue) == [
        (MESSAGES[0].body, {"x-org": "Acme"}),
        (MESSAGES[1].body, {"h": "v"}),
    ]


async def test_the_same_on_an_asynchronous_connection(
    caller_async: Any, queue: str, connection: psycopg.Connection
) -> None:
    await send_within_async(caller_async, queue, MESSAGES)
    await caller_async.rollback()
    assert stored(connection, queue) == []
    await send_within_async(caller_async, queue, MESSAGES)
    assert await once_within_async(caller_async, queue, "k")
    await caller_async.commit()
    assert len(stored(connection, queue)) == 2
    assert not await once_within_async(caller_async, queue, "k")


def test_a_key_is_taken_with_the_commit_and_free_again_with_the_rollback(
    caller: Any, queue: str
) -> None:
    assert once_within(caller, queue, "charge:42")
    assert not once_within(caller, queue, "charge:42")
    caller.rollback()
    assert once_within(caller, queue, "charge:42")
    caller.commit()
    assert not once_within(caller, queue, "charge:42")


def test_bad_input_leaves_the_callers_transaction_as_it_was(
    caller: Any, queue: str, connection: psycopg.Connection
) -> None:
    send_within(caller, queue, MESSAGES)
    with pytest.raises(InvalidInput, match=r"^message 1: \$\.a: contains NUL"):
        send_within(caller, queue, [NewMessage({}), NewMessage({"a": "\x00"})])
    caller.commit()
    assert len(stored(connection, queue)) == 2


async def test_a_connection_of_the_other_kind_or_of_none_is_refused_by_name(
    database: str, queue: str
) -> None:
    async with await psycopg.AsyncConnection.connect(database) as other:
        with pytest.raises(InvalidInput, match="AsyncConnection is of the other kind"):
            send_within(other, queue, MESSAGES)
    with (
        psycopg.connect(database) as one,
        pytest.raises(InvalidInput, match="Connection is of the other kind"),
    ):
        await send_within_async(one, queue, MESSAGES)
    with pytest.raises(InvalidInput, match="none of psycopg or SQLAlchemy"):
        send_within(object(), queue, MESSAGES)
