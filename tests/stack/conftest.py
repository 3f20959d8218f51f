from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stack.operated import Jobs

if TYPE_CHECKING:
    import psycopg

    from cli import Cli


@pytest.fixture
def jobs(connection: psycopg.Connection, cli: Cli, database: str) -> Jobs:
    return Jobs(connection, cli, database)
