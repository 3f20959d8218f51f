"""The settings of a transaction: who asks, and what of the request the functions can read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlease.local.gateway.http_request import HttpRequest
    from fairlease.local.gateway.prefer import Preferences
    from fairlease.local.gateway.routine import Routine
    from fairlease.local.gateway.schema_cache import RoleSettings
    from fairlease.local.gateway.tokens import Caller

_ISOLATION_LEVELS = ("serializable", "repeatable read")


def transaction_settings(
    request: HttpRequest,
    caller: Caller,
    routine: Routine,
    search_path: Iterable[str],
    roles: RoleSettings,
    preferences: Preferences,
) -> list[tuple[str, str]]:
    """In PostgREST's order: a role's settings come before it becomes the role, which may not."""
    path = ", ".join(sql.Identifier(schema).as_string() for schema in search_path)
    settings = [
        ("search_path", path),
        *roles.settings.get(caller.role, ()),
        ("role", caller.role),
        ("request.jwt.claims", caller.claims),
        ("request.method", request.method),
        ("request.path", request.api_path),
        ("request.headers", _json(dict(each for each in request.headers if each[0] != "cookie"))),
        ("request.cookies", _json(_cookies(request))),
    ]
    if preferences.timezone is not None:
        settings.append(("timezone", preferences.timezone))
    return [*settings, *routine.settings]


def isolation_level(routine: Routine, caller: Caller, roles: RoleSettings) -> str:
    level = routine.isolation_level or roles.isolation_levels.get(caller.role)
    return level if level in _ISOLATION_LEVELS else "read committed"


def _cookies(request: HttpRequest) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in (request.header("cookie") or "").split(";"):
        name, _, value = part.strip().partition("=")
        if name:
            found[name] = value.strip('"')
    return found


def _json(value: dict[str, str]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
