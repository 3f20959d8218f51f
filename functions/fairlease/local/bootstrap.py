"""Makes an empty database look like Supabase's: its roles, its schemas, pgmq."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import psycopg
from pgmq.install import get_embedded_install_sql
from psycopg import sql

from fairlease.local.postgres import SUPERUSER

if TYPE_CHECKING:
    from fairlease.local.postgres import LocalPostgres

_LOGIN_ROLES = ("postgres", "authenticator")


def bootstrap(server: LocalPostgres, database: str = "postgres") -> None:
    """Idempotent. The login roles get the server's password, so that `server.url` fits them."""
    statements = files(__package__).joinpath("bootstrap.sql").read_text(encoding="utf-8")
    with psycopg.connect(server.url(database, SUPERUSER)) as connection:
        connection.execute(statements)
        for role in _LOGIN_ROLES:
            connection.execute(
                sql.SQL("alter role {} password {}").format(sql.Identifier(role), server.password)
            )
    with psycopg.connect(server.url(database)) as connection:
        install_pgmq(connection)


def install_pgmq(connection: psycopg.Connection) -> bool:
    """Install pgmq as the connection's role where it is missing; say whether it was."""
    row = connection.execute("select to_regclass('pgmq.meta') is null").fetchone()
    if row is None or not row[0]:
        return False
    connection.execute(get_embedded_install_sql())
    return True
