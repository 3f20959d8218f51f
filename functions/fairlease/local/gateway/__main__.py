"""`python -m fairlease.local.gateway`: the gateway as a process of its own.

Prints `READY <url>` once calls are answered. Every option has an environment variable, which keeps
secrets out of the process list.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys

from fairlease.errors import FairleaseError
from fairlease.local.gateway.config import GatewayConfig
from fairlease.local.gateway.faults import Faults
from fairlease.local.gateway.server import serve

_PREFIX = "FAIRLEASE_GATEWAY_"


def main() -> int:
    options = _parser().parse_args()
    try:
        serve(_config(options), options.host, int(options.port), _announce)
    except FairleaseError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fairlease.local.gateway",
        description="PostgREST's RPCs and Supabase's key check, for development and tests.",
    )

    def option(name: str, default: str, text: str) -> None:
        variable = _PREFIX + name.replace("-", "_").upper()
        fallback = os.environ.get(variable, default)
        parser.add_argument(f"--{name}", default=fallback, help=f"{text} (also {variable})")

    option("database-url", "", "URL that logs in as the authenticator role; required")
    option("jwt-secret", "", "secret of the HS256 tokens")
    option("jwt-aud", "", "audience that tokens must name, if they name one")
    option("schemas", "public", "exposed schemas, separated by commas; the first is the default")
    option("anon-role", "anon", "role of requests without a token; empty refuses them")
    option("max-rows", "1000", "most rows of an answer; empty for no limit")
    option("pool", "10", "database connections")
    option("api-keys", "", "key=role, separated by commas; empty: no key is asked for")
    option("admin-token", "", "opens /_gateway; random if empty")
    option("chaos", "0", "probability that a call meets a fault, 0 to 1")
    option("host", "127.0.0.1", "loopback address")
    option("port", "0", "0: a free one")
    return parser


def _config(options: argparse.Namespace) -> GatewayConfig:
    faults = Faults()
    if float(options.chaos) > 0:
        faults.add_chaos(float(options.chaos))
    keys = [pair.rpartition("=") for pair in options.api_keys.split(",") if pair]
    return GatewayConfig(
        database_url=options.database_url,
        jwt_secret=options.jwt_secret or None,
        jwt_aud=options.jwt_aud or None,
        db_schemas=tuple(options.schemas.split(",")),
        db_anon_role=options.anon_role or None,
        db_max_rows=int(options.max_rows) if options.max_rows else None,
        db_pool=int(options.pool),
        api_keys={key: role for key, _, role in keys} or None,
        admin_token=options.admin_token or secrets.token_urlsafe(),
        faults=faults,
    )


def _announce(url: str) -> None:
    sys.stdout.write(f"READY {url}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
