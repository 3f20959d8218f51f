from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bad_input.bench import QUEUE, Bench
from contract.api import KEY, gateway
from fairlease.transports.postgres import PostgresRpc
from fairlease.transports.postgrest import PostgrestRpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

    from fairlease.local.postgres import LocalPostgres
    from fairlease.rpc import Rpc


@pytest.fixture(params=["postgres", "postgrest"])
def connect(
    request: pytest.FixtureRequest, postgres: LocalPostgres, database: str
) -> Iterator[Callable[[], Rpc]]:
    """Each transport in turn."""
    if request.param == "postgres":
        yield lambda: PostgresRpc(database)
        return
    with gateway(postgres, database) as url:
        yield lambda: PostgrestRpc(url, KEY)


@pytest.fixture
def bench(database: str, connect: Callable[[], Rpc], connection: psycopg.Connection) -> Bench:
    connection.execute("select fairlease.attach_queue(%s)", [QUEUE])
    return Bench(database, connect, connection)
