from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from fairlease.local.gateway import GatewayConfig, running_gateway
from fairlease.local.postgres import SUPERUSER
from fairlease.telemetry.logs import LOGGER
from skew.api import KEY, TOKEN, Api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from fairlease.local.postgres import LocalPostgres


@pytest.fixture
def serve(postgres: LocalPostgres, pgmq_database: str) -> Callable[[], AbstractContextManager[Api]]:
    """`with serve() as api`: the schema is loaded now and is stale after every later change."""

    @contextmanager
    def _serve(channel: str = "nobody_notifies") -> Iterator[Api]:
        name = urlsplit(pgmq_database).path.lstrip("/")
        config = GatewayConfig(
            database_url=postgres.url(name, "authenticator"),
            jwt_secret="a-secret-of-the-skew-tests-of-32-bytes",
            db_schemas=("public", "pgmq_public"),
            db_extra_search_path=(),
            db_channel=channel,
            api_keys={KEY: "service_role"},
            db_pool=6,
            admin_token=TOKEN,
        )
        with running_gateway(config) as url:
            yield Api(url)

    return _serve


@pytest.fixture
def watching_url(postgres: LocalPostgres, pgmq_database: str) -> str:
    """For who looks at every table, whoever owns it."""
    return postgres.url(urlsplit(pgmq_database).path.lstrip("/"), SUPERUSER)


@pytest.fixture
def log_lines() -> Iterator[list[dict[str, Any]]]:
    """Every line of the engine's log: its event, and its fields."""
    lines: list[dict[str, Any]] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if fields := vars(record).get("fields"):
                lines.append({"event": record.getMessage(), **fields})

    handler = Keep()
    before = LOGGER.level
    LOGGER.setLevel(logging.INFO)
    LOGGER.addHandler(handler)
    yield lines
    LOGGER.removeHandler(handler)
    LOGGER.setLevel(before)
