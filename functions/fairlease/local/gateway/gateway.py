"""The life of one request: who, where, what, then the database, then the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
from psycopg import AsyncConnection

from fairlease.local.gateway.errors import Answer, GatewayError, invalid_body, no_schema_cache
from fairlease.local.gateway.hints import nearest
from fairlease.local.gateway.http_request import HttpRequest, chosen_schema
from fairlease.local.gateway.media import Kind
from fairlease.local.gateway.payload import parse_payload
from fairlease.local.gateway.plan import Plan, content_media, plan_call
from fairlease.local.gateway.platform_keys import KeyRefused, PlatformKeys
from fairlease.local.gateway.prefer import Preferences, parse_preferences, wanted_timezone
from fairlease.local.gateway.query import parse_query
from fairlease.local.gateway.respond import answer_of, check_outcome
from fairlease.local.gateway.session import isolation_level, transaction_settings
from fairlease.local.gateway.statement import call_statement
from fairlease.local.gateway.tokens import Caller, Tokens
from fairlease.local.gateway.transaction import Outcome, Transaction, run_transaction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fairlease.local.gateway.config import GatewayConfig
    from fairlease.local.gateway.pool import ConnectionPool
    from fairlease.local.gateway.schema_cache import SchemaCache
    from fairlease.local.gateway.watch import SchemaWatch

_TABLE_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_TABLE_BODIES = ("POST", "PUT", "PATCH")
_TABLE_NAME_SCORE = 0.75


class Gateway:
    """Answers requests; `now` is the time in seconds since 1970."""

    def __init__(
        self,
        config: GatewayConfig,
        watch: SchemaWatch,
        pool: ConnectionPool,
        now: Callable[[], float],
    ) -> None:
        self._config = config
        self._watch = watch
        self._pool = pool
        self._timezones: frozenset[str] | None = None
        self._tokens = Tokens(
            secret=config.jwt_secret,
            audience=config.jwt_aud,
            anonymous_role=config.db_anon_role,
            now=now,
        )
        self._keys: PlatformKeys | None = None
        if config.api_keys is not None and config.jwt_secret is not None:
            self._keys = PlatformKeys(config.api_keys, config.jwt_secret, self._tokens, now)

    async def answer(
        self,
        request: HttpRequest,
        client_gone: Callable[[], Awaitable[bool]],
        max_rows: int | None = None,
    ) -> Answer:
        """`max_rows` overrides the configured limit. Raises ClientGone."""
        try:
            request = self._past_the_platform(request)
            caller = self._tokens.caller(request.header("authorization"))
            limit = self._config.db_max_rows if max_rows is None else max_rows
            return await self._answer(request, caller, client_gone, limit)
        except KeyRefused as refusal:
            return refusal.answer
        except GatewayError as error:
            return error.answer()

    def _past_the_platform(self, request: HttpRequest) -> HttpRequest:
        if self._keys is None:
            return request
        authorization = self._keys.authorization(
            request.all("apikey"), request.header("authorization"), request.query
        )
        others = [header for header in request.headers if header[0] != "authorization"]
        return replace(
            request,
            headers=(*others, ("authorization", authorization)),
            query=self._keys.without_key(request.query),
        )

    async def _answer(
        self,
        request: HttpRequest,
        caller: Caller,
        client_gone: Callable[[], Awaitable[bool]],
        max_rows: int | None,
    ) -> Answer:
        cache = self._watch.schema
        if cache is None:
            raise no_schema_cache()
        segments = request.segments
        name = request.function_name
        if name is None and len(segments) > 1:
            raise GatewayError(404, "PGRST125", "Invalid path specified in request URL")
        schema = chosen_schema(request, self._config.db_schemas)
        if name is None:
            raise _no_function(request, schema, segments, cache)
        preferences = await self._preferences(request)
        plan = plan_call(request, (schema, name), cache, preferences, max_rows)
        if request.method == "OPTIONS":
            return _allowed(plan)
        outcome = await self._run(request, caller, plan, preferences, schema, client_gone)
        profile = schema if self._names_profile(request) else None
        return answer_of(outcome, plan.routine, plan.shape, plan.wanted, preferences, profile)

    async def _run(
        self,
        request: HttpRequest,
        caller: Caller,
        plan: Plan,
        preferences: Preferences,
        schema: str,
        client_gone: Callable[[], Awaitable[bool]],
    ) -> Outcome:
        roles = self._watch.roles
        wants_object = plan.shape.media.kind is Kind.OBJECT
        highest = preferences.highest_affected

        def check(outcome: Outcome) -> GatewayError | None:
            return check_outcome(wants_object, highest, outcome.page)

        transaction = Transaction(
            call=call_statement(plan.call, plan.shape),
            settings=transaction_settings(
                request,
                caller,
                plan.routine,
                (schema, *self._config.db_extra_search_path),
                roles,
                preferences,
            ),
            isolation_level=isolation_level(plan.routine, caller, roles),
            read_only=plan.read_only,
            rolls_back=preferences.transaction == "rollback"
            or (self._config.tx_rolls_back and preferences.transaction != "commit"),
            check=check if wants_object or highest is not None else None,
        )
        return await run_transaction(
            self._pool,
            transaction,
            anonymous=caller.role == self._config.db_anon_role,
            client_gone=client_gone,
        )

    async def _preferences(self, request: HttpRequest) -> Preferences:
        headers = request.all("prefer")
        if not headers:
            return Preferences()
        timezone = wanted_timezone(headers)
        return parse_preferences(
            headers,
            override_allowed=self._config.tx_override_allowed,
            timezone_known=timezone is not None and timezone in await self._known_timezones(),
        )

    async def _known_timezones(self) -> frozenset[str]:
        if self._timezones is None:
            try:
                async with await AsyncConnection.connect(self._config.database_url) as connection:
                    cursor = await connection.execute("select name from pg_timezone_names")
                    self._timezones = frozenset(name for (name,) in await cursor.fetchall())
            except psycopg.OperationalError:
                return frozenset()
        return self._timezones

    def _names_profile(self, request: HttpRequest) -> bool:
        """One exposed schema and no profile: the answer does not tell it either."""
        asked = request.header("content-profile") or request.header("accept-profile")
        return asked is not None or len(self._config.db_schemas) > 1


def _allowed(plan: Plan) -> Answer:
    methods = "OPTIONS,POST" if plan.routine.is_volatile else "OPTIONS,GET,HEAD,POST"
    return Answer(200, b"", (("Access-Control-Allow-Origin", "*"), ("Allow", methods)))


def _no_function(
    request: HttpRequest, schema: str, segments: list[str], cache: SchemaCache
) -> GatewayError:
    """The gateway serves functions; a table gets PostgREST's answer for one that is missing."""
    if not segments and request.method in {"GET", "HEAD"}:
        return GatewayError(404, "PGRST126", "Root endpoint metadata is disabled")
    if not segments or request.method not in _TABLE_METHODS:
        return GatewayError(405, "PGRST117", f"Unsupported HTTP method: {request.method}")
    parse_query(request.query, arguments_allowed=False)
    if request.method in _TABLE_BODIES:
        media = content_media(request)
        if media.kind in {Kind.TEXT, Kind.XML, Kind.OCTETS}:
            return invalid_body(f"Content-Type not acceptable: {media.mime}")
        if media.kind is Kind.JSON and not request.body:
            return invalid_body("Empty or invalid json")
        parse_payload(request.body, media, None)
    name, tables = segments[0], cache.tables.get(schema, frozenset())
    if name in tables:
        return GatewayError(
            400,
            "PGRST127",
            "Feature not implemented",
            "fairlease's local gateway serves functions only: read and write tables through one",
        )
    hint = nearest(sorted(tables), name, _TABLE_NAME_SCORE)
    return GatewayError(
        404,
        "PGRST205",
        f"Could not find the table '{schema}.{name}' in the schema cache",
        hint=hint and f"Perhaps you meant the table '{schema}.{hint}'",
    )
