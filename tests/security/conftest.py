from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import psycopg


@pytest.fixture
def queue(connection: psycopg.Connection) -> str:
    connection.execute("select fairlease.attach_queue('jobs', unique_keys => true)")
    return "jobs"
