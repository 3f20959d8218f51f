from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract.api import KEY, gateway
from fairlease.transports.postgres import PostgresRpc
from fairlease.transports.postgrest import PostgrestRpc

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import psycopg

    from fairlease.local.postgres import LocalPostgres
    from fairlease.rpc import Rpc

QUEUE = "contract"


@pytest.fixture
def queue(connection: psycopg.Connection) -> str:
    connection.execute("select fairlease.attach_queue(%s)", [QUEUE])
    return QUEUE


@pytest.fixture
def gateway_url(postgres: LocalPostgres, database: str) -> Iterator[str]:
    with gateway(postgres, database) as url:
        yield url


@pytest.fixture(params=["postgres", "postgrest"])
async def rpc(request: pytest.FixtureRequest, database: str, queue: str) -> AsyncIterator[Rpc]:
    """Each transport in turn; what one passes, the other must pass."""
    adapter: PostgresRpc | PostgrestRpc
    if request.param == "postgres":
        adapter = PostgresRpc(database)
    else:
        adapter = PostgrestRpc(request.getfixturevalue("gateway_url"), KEY)
    yield adapter
    await adapter.aclose()
