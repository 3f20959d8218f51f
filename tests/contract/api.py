"""A gateway over a cloned database."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fairlease.local.gateway import Faults, GatewayConfig, running_gateway

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from fairlease.local.postgres import LocalPostgres

KEY = "sb_secret_contract"


def gateway(
    postgres: LocalPostgres, database: str, faults: Faults | None = None
) -> AbstractContextManager[str]:
    """Yields its URL; `KEY` opens it as service_role."""
    name = urlsplit(database).path.lstrip("/")
    return running_gateway(
        GatewayConfig(
            database_url=postgres.url(name, "authenticator"),
            jwt_secret="a-secret-of-the-contract-tests-32-bytes",
            db_schemas=("public", "pgmq_public"),
            api_keys={KEY: "service_role"},
            db_pool=4,
            faults=faults or Faults(),
        )
    )
