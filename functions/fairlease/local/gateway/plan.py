"""What a request to a function comes to, found out without asking the database."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlease.local.gateway.errors import GatewayError
from fairlease.local.gateway.media import (
    JSON,
    RAW_OCTETS,
    Kind,
    MediaType,
    accepted,
    decode_media_type,
)
from fairlease.local.gateway.payload import Payload, parse_payload
from fairlease.local.gateway.query import check_plan, parse_query
from fairlease.local.gateway.ranges import wanted_rows
from fairlease.local.gateway.resolution import Wanted, find_routine
from fairlease.local.gateway.statement import Call, Shape

if TYPE_CHECKING:
    from fairlease.local.gateway.http_request import HttpRequest
    from fairlease.local.gateway.prefer import Preferences
    from fairlease.local.gateway.query import Query
    from fairlease.local.gateway.ranges import Rows
    from fairlease.local.gateway.routine import Routine
    from fairlease.local.gateway.schema_cache import SchemaCache

_READS = ("GET", "HEAD")
METHODS = (*_READS, "POST", "OPTIONS")
_PRODUCED = (Kind.JSON, Kind.CSV, Kind.GEOJSON, Kind.OBJECT, Kind.STRIPPED_ARRAY)


@dataclass(frozen=True)
class Plan:
    """`wanted`: the rows asked for, before the server's own limit."""

    call: Call
    shape: Shape
    wanted: Rows
    read_only: bool

    @property
    def routine(self) -> Routine:
        return self.call.routine


def plan_call(
    request: HttpRequest,
    target: tuple[str, str],
    cache: SchemaCache,
    preferences: Preferences,
    max_rows: int | None,
) -> Plan:
    """`target`: schema and function. Raises GatewayError, the same one first as PostgREST."""
    schema, name = target
    if request.method not in METHODS:
        raise GatewayError(405, "PGRST101", f"Cannot use the {request.method} method on RPC")
    posted = request.method == "POST"
    query = parse_query(request.query, arguments_allowed=request.method in _READS)
    wanted = wanted_rows(query.pairs, request.header("range") if request.method == "GET" else None)
    body = content_media(request) if posted else None
    if body is not None:
        payload = parse_payload(request.body, body, query.columns)
    else:
        names = frozenset(argument for argument, _ in query.arguments)
        payload = Payload(argument_names=names, pairs=query.arguments)
    routine = find_routine(
        cache, Wanted(schema, name, payload.argument_names, body.kind if body else None)
    )
    check_plan(query, routine.relation_name, schema)
    media = _negotiated(accepted(request.header("accept")), _own_media(routine, query))
    preferences.check()
    if preferences.highest_affected is not None and not routine.returns_set:
        raise GatewayError(
            400,
            "PGRST128",
            "Function must return SETOF or TABLE when max-affected preference is used with "
            "handling=strict",
        )
    return Plan(
        Call(routine, payload.argument_names, payload.raw, payload.pairs),
        Shape(
            query,
            wanted.at_most(max_rows),
            media,
            counted=preferences.counts_rows,
            headers_only=request.method == "HEAD",
        ),
        wanted,
        read_only=not posted or not routine.is_volatile,
    )


def content_media(request: HttpRequest) -> MediaType:
    header = request.header("content-type")
    return JSON if header is None else decode_media_type(header)


def _own_media(routine: Routine, query: Query) -> MediaType | None:
    """What a function produces by itself, if its value is taken as it is."""
    if routine.media_type is None or not routine.returns_scalar or not query.selects_all:
        return None
    return replace(decode_media_type(routine.media_type[1]), raw=True)


def _negotiated(wanted: list[MediaType], own: MediaType | None) -> MediaType:
    for media in wanted:
        if own is not None and (own.kind is Kind.ANY or media == replace(own, raw=False)):
            return RAW_OCTETS if own.kind is Kind.ANY else own
        if media.kind is Kind.ANY:
            return JSON
        if media.kind in _PRODUCED:
            return media
    listed = ", ".join(media.mime for media in wanted)
    raise GatewayError(406, "PGRST107", f"None of these media types are available: {listed}")
