"""The gateway as a child of the local stack: told by its environment, for arguments can be read."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from fairlease.errors import FairleaseError
from fairlease.local.gateway.config import GatewayConfig
from fairlease.local.gateway.server import serve

if TYPE_CHECKING:
    from fairlease.local.keys import Keys

_VARIABLE = "FAIRLEASE_LOCAL_GATEWAY"
_EXPOSED_SCHEMAS = ("public", "pgmq_public")


def environment(database_url: str, keys: Keys, port: int) -> dict[str, str]:
    """For a process that runs this module; `database_url` logs in as the authenticator."""
    told = {
        "database_url": database_url,
        "jwt_secret": keys.jwt_secret,
        "api_keys": {keys.secret_key: "service_role", keys.publishable_key: "anon"},
        "port": port,
    }
    return {**os.environ, _VARIABLE: json.dumps(told)}


def main() -> None:
    told = json.loads(os.environ.pop(_VARIABLE))
    port = told.pop("port")
    config = GatewayConfig(db_schemas=_EXPOSED_SCHEMAS, **told)
    try:
        serve(config, port=port, on_ready=lambda url: print(f"READY {url}", flush=True))  # noqa: T201 - the parent reads it
    except FairleaseError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
