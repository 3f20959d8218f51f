"""The database that the recorded cases start from, made anew for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from pgmq.install import get_embedded_install_sql

from fairlease.local.gateway import GatewayConfig
from fairlease.local.postgres import SUPERUSER

if TYPE_CHECKING:
    from fairlease.local.postgres import LocalPostgres

SETTINGS = {"fsync": "off", "synchronous_commit": "off", "autovacuum": "off"}
SECRET = "super-secret-jwt-token-with-at-least-32-characters-long"
ADMIN_TOKEN = "admin-token-of-the-tests"
SECRET_KEY = "sb_secret_of_the_tests"
PUBLISHABLE_KEY = "sb_publishable_of_the_tests"

ROLES = "anon, authenticated, service_role"

_ROLES = """
create role postgres superuser login;
create role anon nologin noinherit;
create role authenticated nologin noinherit;
create role service_role nologin noinherit bypassrls;
create role authenticator login noinherit;
create role not_granted nologin noinherit;
grant anon, authenticated, service_role to authenticator;
"""

# The schemas and the settings of the roles; a queue of the last case goes with its tables.
_RESET = f"""
do $$
declare
  v_queue text;
begin
  for v_queue in select queue_name from pgmq.meta loop
    perform pgmq.drop_queue(v_queue);
  end loop;
end
$$;
drop schema if exists public, pgmq_public, private, extensions cascade;
create schema public;
create schema pgmq_public;
create schema private;
create schema extensions;
grant usage on schema public, pgmq_public, extensions to {ROLES};
grant usage on schema pgmq to service_role;
alter default privileges in schema public grant all on tables to {ROLES};
alter default privileges in schema pgmq_public grant all on tables to {ROLES};
alter role service_role reset all;
alter role anon set statement_timeout = '3s';
alter role authenticated set statement_timeout = '8s';
alter role authenticator set statement_timeout = '8s';
alter role authenticator set lock_timeout = '8s';
"""


class BaseState:
    """A superuser's session on a server of its own: roles are changed by some cases."""

    def __init__(self, server: LocalPostgres) -> None:
        self._server = server
        with psycopg.connect(server.url(user=SUPERUSER), autocommit=True) as admin:
            admin.execute(_ROLES)
            for role in ("postgres", "authenticator"):
                admin.execute(f"alter role {role} password '{server.password}'")
        self.session = psycopg.connect(server.url(), autocommit=True)
        self.session.execute(get_embedded_install_sql())

    @property
    def url(self) -> str:
        return self._server.url()

    @property
    def authenticator_url(self) -> str:
        return self._server.url(user="authenticator")

    def reset(self) -> None:
        self.session.execute(_RESET)

    def close(self) -> None:
        self.session.close()


def recorded_config(base: BaseState, **changes: Any) -> GatewayConfig:
    """As PostgREST was configured for the recording."""
    settings = {
        "database_url": base.authenticator_url,
        "jwt_secret": SECRET,
        "db_schemas": ("public", "pgmq_public"),
        "admin_token": ADMIN_TOKEN,
    }
    return GatewayConfig(**{**settings, **changes})


def keyed_config(base: BaseState, **changes: Any) -> GatewayConfig:
    """With the platform's key check before it."""
    keys = {SECRET_KEY: "service_role", PUBLISHABLE_KEY: "anon"}
    return recorded_config(base, **{"api_keys": keys, **changes})
