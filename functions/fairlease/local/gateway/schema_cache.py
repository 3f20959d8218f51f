"""PostgREST's picture of the database: stale until somebody asks for a reload."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from psycopg import AsyncRawCursor, sql
from psycopg.rows import dict_row

from fairlease.local.gateway.routine import Parameter, Routine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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

# Settings of the roles that the login role may become, and whether it may set them though they are
# not everybody's to set.
_ROLE_SETTINGS = """
select r.rolname, s.name, s.value, has_parameter_privilege(s.name, 'set')
from pg_catalog.pg_auth_members m
join pg_catalog.pg_roles r on r.oid = m.roleid
cross join lateral unnest(r.rolconfig) as u (setting)
cross join lateral (
  select pg_catalog.split_part(u.setting, '=', 1), substr(u.setting, strpos(u.setting, '=') + 1)
) as s (name, value)
where m.member = (select oid from pg_catalog.pg_roles where rolname = current_user)
"""
_EVERYBODYS_SETTINGS = "select name from pg_catalog.pg_settings where context = 'user'"

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


async def load_schema_cache(connection: AsyncConnection[Any], config: GatewayConfig) -> SchemaCache:
    """Raises psycopg.Error, also where a schema of the configuration does not exist."""
    schemas = list(config.db_schemas)
    needed = [sql.Identifier(name).as_string() for name in (*schemas, *config.db_extra_search_path)]
    async with connection.transaction():
        cursor = AsyncRawCursor(connection)
        await cursor.execute("set local search_path to ''")
        await cursor.execute("select name::regnamespace from unnest($1::text[]) name", [needed])
        await cursor.execute(_TABLES, [schemas])
        tables = _grouped(await cursor.fetchall())
        rows = AsyncRawCursor(connection, row_factory=dict_row)
        await rows.execute(_ROUTINES, [schemas, list(_HOISTED_SETTINGS)])
        routines = [_routine(row) for row in await rows.fetchall()]
    by_name: dict[tuple[str, str], list[Routine]] = defaultdict(list)
    for routine in sorted(routines, key=lambda routine: routine.order):
        by_name[routine.schema, routine.name].append(routine)
    return SchemaCache({key: tuple(found) for key, found in by_name.items()}, tables)


async def everybodys_settings(connection: AsyncConnection[Any]) -> frozenset[str]:
    """Names of the settings that any role may change."""
    cursor = await connection.execute(_EVERYBODYS_SETTINGS)
    return frozenset(name for (name,) in await cursor.fetchall())


async def load_role_settings(
    connection: AsyncConnection[Any], everybodys: frozenset[str]
) -> RoleSettings:
    cursor = await connection.execute(_ROLE_SETTINGS)
    settings: dict[str, list[tuple[str, str]]] = defaultdict(list)
    levels: dict[str, str] = {}
    for role, name, value, granted in await cursor.fetchall():
        if name == _ISOLATION:
            levels[role] = value.lower()
        elif granted or name in everybodys:
            settings[role].append((name, value))
    return RoleSettings({role: tuple(pairs) for role, pairs in settings.items()}, levels)


def _grouped(rows: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    grouped: dict[str, set[str]] = defaultdict(set)
    for schema, name in rows:
        grouped[schema].add(name)
    return {schema: frozenset(names) for schema, names in grouped.items()}


def _routine(row: dict[str, Any]) -> Routine:
    parameters = tuple(Parameter(**each) for each in row["parameters"])
    settings = tuple((name, value) for name, value in row["settings"])
    media_type = row["media_type"] and tuple(row["media_type"])
    changed = {"parameters": parameters, "settings": settings, "media_type": media_type}
    return Routine(**{**row, **changed})
