"""PostgREST's picture of the database: stale until somebody asks for a reload."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from fairlease.local.gateway.routine import Parameter, Routine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from psycopg import AsyncConnection

    from fairlease.local.gateway.config import GatewayConfig

_HOISTED_SETTINGS = ("statement_timeout", "plan_filter.statement_cost_limit")
_ROUTINES = files(__package__).joinpath("routines.sql").read_text(encoding="utf-8")

_TABLES = """
select n.nspname, c.relname
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = any ($1) and c.relkind in ('r', 'v', 'm', 'f', 'p') and not c.relispartition
"""

# Settings of the roles that the login role may become, where it may set them.
_ROLE_SETTINGS = """
select r.rolname, s.name, s.value
from pg_catalog.pg_auth_members m
join pg_catalog.pg_roles r on r.oid = m.roleid
cross join lateral unnest(r.rolconfig) as u (setting)
cross join lateral (
  select pg_catalog.split_part(u.setting, '=', 1), substr(u.setting, strpos(u.setting, '=') + 1)
) as s (name, value)
join pg_catalog.pg_settings k on k.name = s.name
where m.member = (select oid from pg_catalog.pg_roles where rolname = current_user)
  and (k.context = 'user' or has_parameter_privilege(current_user, k.name, 'set'))
"""

_ISOLATION = "default_transaction_isolation"


@dataclass(frozen=True)
class SchemaCache:
    """Functions by schema and name, fewest parameters first; names of tables by schema."""

    routines: Mapping[tuple[str, str], tuple[Routine, ...]]
    tables: Mapping[str, frozenset[str]]

    def routine_names(self, schema: str) -> list[str]:
        return sorted(name for owner, name in self.routines if owner == schema)


@dataclass(frozen=True)
class RoleSettings:
    """What `alter role ... set` says of the roles that requests run as."""

    settings: Mapping[str, tuple[tuple[str, str], ...]]
    isolation_levels: Mapping[str, str]


async def load_schema_cache(
    connection: AsyncConnection[object], config: GatewayConfig
) -> SchemaCache:
    """Raises psycopg.Error, also where a schema of the configuration does not exist."""
    schemas = list(config.db_schemas)
    async with connection.transaction(), psycopg.AsyncRawCursor(connection) as cursor:
        await cursor.execute("set local search_path to ''")
        for schema in (*schemas, *config.db_extra_search_path):
            quoted = sql.Identifier(schema).as_string(None)
            await cursor.execute("select $1::regnamespace", [quoted])
        await cursor.execute(_TABLES, [schemas])
        tables = _grouped(await cursor.fetchall())
    async with (
        connection.transaction(),
        psycopg.AsyncRawCursor(connection, row_factory=dict_row) as cursor,
    ):
        await cursor.execute("set local search_path to ''")
        await cursor.execute(_ROUTINES, [schemas, list(_HOISTED_SETTINGS)])
        routines = [_routine(row) for row in await cursor.fetchall()]
    by_name: dict[tuple[str, str], list[Routine]] = defaultdict(list)
    for routine in sorted(routines, key=lambda routine: routine.order):
        by_name[routine.schema, routine.name].append(routine)
    return SchemaCache({key: tuple(found) for key, found in by_name.items()}, tables)


async def load_role_settings(connection: AsyncConnection[object]) -> RoleSettings:
    cursor = await connection.execute(_ROLE_SETTINGS)
    settings: dict[str, list[tuple[str, str]]] = defaultdict(list)
    levels: dict[str, str] = {}
    for role, name, value in await cursor.fetchall():
        if name == _ISOLATION:
            levels[role] = value.lower()
        else:
            settings[role].append((name, value))
    return RoleSettings({role: tuple(pairs) for role, pairs in settings.items()}, levels)


def _grouped(rows: Sequence[Sequence[str]]) -> dict[str, frozenset[str]]:
    grouped: dict[str, set[str]] = defaultdict(set)
    for schema, name in rows:
        grouped[schema].add(name)
    return {schema: frozenset(names) for schema, names in grouped.items()}


def _routine(row: dict[str, object]) -> Routine:
    fields = dict(row)
    fields["parameters"] = tuple(Parameter(**each) for each in fields["parameters"])
    fields["settings"] = tuple((name, value) for name, value in fields["settings"])
    return Routine(**fields)
