from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fairlease.transports.postgres import PostgresRpc

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import psycopg

    from fairlease.rpc import Rpc

QUEUE = "contract"


@pytest.fixture
def queue(connection: psycopg.Connection) -> str:
    connection.execute("select fairlease.attach_queue(%s)", [QUEUE])
    return QUEUE


@pytest.fixture(params=["postgres"])
async def rpc(request: pytest.FixtureRequest, database: str, queue: str) -> AsyncIterator[Rpc]:
    """Each transport in turn; what one passes, the other must pass."""
    adapter = PostgresRpc(database)
    yield adapter
    await adapter.aclose()
