"""The one statement of a call: the function in a common table expression, its rows shaped above it.

Names inside (`pgrst_call`, `pgrst_scalar`, ...) are PostgREST's: they appear in error texts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from psycopg import sql

from fairlease.local.gateway.fragments import (
    Parameters,
    array_literal,
    column,
    filtered_columns,
    limit_and_offset,
    order_by,
    select_list,
    where,
)
from fairlease.local.gateway.media import Kind

if TYPE_CHECKING:
    from fairlease.local.gateway.media import MediaType
    from fairlease.local.gateway.query import Pair, Query
    from fairlease.local.gateway.ranges import Rows
    from fairlease.local.gateway.routine import Parameter, Routine

_WHITE_SPACE = b" \t\n\r"
# Sent as they are: as text they would end at the first NUL.
_BINARY_TYPES = ("bytea", "text")


@dataclass(frozen=True)
class Statement:
    """SQL with numbered parameters; `binary`: the first value is no text."""

    text: bytes
    values: tuple[bytes, ...] = ()
    binary: bool = False


@dataclass(frozen=True)
class Call:
    """What to call with what: `pairs` are texts by name, or else `body` holds JSON."""

    routine: Routine
    argument_names: frozenset[str]
    body: bytes = b""
    pairs: tuple[Pair, ...] | None = None

    @property
    def body_is_object(self) -> bool:
        return self.body.lstrip(_WHITE_SPACE).startswith(b"{")


@dataclass(frozen=True)
class Shape:
    """What is wanted of the rows."""

    query: Query
    rows: Rows
    media: MediaType
    counted: bool
    headers_only: bool = False


def call_statement(call: Call, shape: Shape) -> Statement:
    positional = call.routine.only_unnamed
    binary = positional is not None and positional.type in _BINARY_TYPES
    if call.pairs is not None or not shape.query.is_plain:
        text, values = _build(call, shape)
        return Statement(text, values, binary)
    # Nothing but the body differs from one such call to the next.
    outline = replace(call, body=b"{" if call.body_is_object else b"")
    text, values = _remembered(outline, shape)
    if positional is not None or call.argument_names:
        values = (call.body, *values[1:])
    return Statement(text, values, binary)


@lru_cache(maxsize=512)
def _remembered(call: Call, shape: Shape) -> tuple[bytes, tuple[bytes, ...]]:
    return _build(call, shape)


def _build(call: Call, shape: Shape) -> tuple[bytes, tuple[bytes, ...]]:
    parameters = Parameters()
    relation = call.routine.relation_name
    source = _source(call, shape.query, parameters)
    filters = where(relation, shape.query.filters, parameters)
    counting: sql.Composable = sql.SQL("")
    total = sql.SQL("null::bigint")
    if shape.counted:
        counting = sql.SQL(", pgrst_source_count as (select 1 from pgrst_source as {}{})").format(
            sql.Identifier(relation), where(relation, shape.query.filters, parameters)
        )
        total = sql.SQL("(select count(*) from pgrst_source_count)")
    composed = sql.SQL(
        "with pgrst_source as ({source}){counting} select {total}, {page}, {body}, "
        "nullif(current_setting('response.headers', true), ''), "
        "nullif(current_setting('response.status', true), '') "
        "from (select {fields} from pgrst_source as {relation}{filters}{order}{rows}) _postgrest_t"
    ).format(
        source=source,
        counting=counting,
        total=total,
        page=sql.SQL("count(_postgrest_t)" if call.routine.returns_set else "1"),
        body=_body(call.routine, shape),
        fields=select_list(relation, shape.query.selected_fields, parameters),
        relation=sql.Identifier(relation),
        filters=filters,
        order=order_by(relation, shape.query.order, parameters),
        rows=limit_and_offset(shape.rows, parameters),
    )
    return composed.as_bytes(), tuple(parameters.values)


def _source(call: Call, query: Query, parameters: Parameters) -> sql.Composable:
    """The call itself: a scalar becomes the column `pgrst_scalar`."""
    routine = call.routine
    payload, arguments = _arguments(call, parameters)
    function = sql.SQL("{}({})").format(sql.Identifier(routine.schema, routine.name), arguments)
    if routine.returns_composite:
        return sql.SQL("select {} from {}{} pgrst_call").format(
            _needed_columns(query), payload, function
        )
    return sql.SQL(
        "select pgrst_call.pgrst_scalar from {}(select {} pgrst_scalar) pgrst_call"
    ).format(payload, function)


def _needed_columns(query: Query) -> sql.Composable:
    names = {item.field.name for item in query.selected_fields}
    if not names or "*" in names:
        return sql.SQL("pgrst_call.*")
    wanted = sorted(names | filtered_columns(query.filters))
    return sql.SQL(", ").join([column("pgrst_call", name) for name in wanted])


def _arguments(call: Call, parameters: Parameters) -> tuple[sql.Composable, sql.Composable]:
    """What stands before the function in FROM, and what is given to it."""
    nothing = sql.SQL("")
    positional = call.routine.only_unnamed
    if positional is not None:
        return nothing, _cast(parameters.add(call.body), positional.type)
    given = [each for each in call.routine.parameters if each.name in call.argument_names]
    if not given:
        return nothing, nothing
    if call.pairs is not None:
        texts = _texts(given, call.pairs)
        values = {
            each.name: _cast(parameters.add(texts[each.name]), each.cast_type) for each in given
        }
        return nothing, _named(given, values)
    values = {each.name: sql.Identifier("pgrst_body", each.name) for each in given}
    return _payload(call, given, parameters), sql.SQL("{}").format(_named(given, values))


def _named(given: list[Parameter], values: dict[str, sql.Composable]) -> sql.Composable:
    return sql.SQL(", ").join(
        [
            sql.SQL("variadic {} := {}" if each.variadic else "{} := {}").format(
                sql.Identifier(each.name), values[each.name]
            )
            for each in given
        ]
    )


def _payload(call: Call, given: list[Parameter], parameters: Parameters) -> sql.Composable:
    """The members of the JSON body, each read by the input function of its parameter's type."""
    reader = "json_to_record({}) as _({})"
    if not call.body_is_object:
        reader = "json_to_recordset({}) as _({}) limit 1"
    columns = [
        sql.SQL("{} {}").format(sql.Identifier(each.name), sql.SQL(each.cast_type))
        for each in given
    ]
    return sql.SQL(
        "(select {}::json as json_data) pgrst_payload, lateral (select {} from {}) pgrst_body, "
        "lateral "
    ).format(
        parameters.add(call.body),
        sql.SQL(", ").join([sql.Identifier(each.name) for each in given]),
        sql.SQL(reader).format(sql.SQL("pgrst_payload.json_data"), sql.SQL(", ").join(columns)),
    )


def _texts(given: list[Parameter], pairs: tuple[Pair, ...]) -> dict[str, str]:
    """A repeated name gathers values where the parameter is variadic; else the last one counts."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, value in pairs:
        found[name].append(value)
    return {
        each.name: array_literal(found[each.name]) if each.variadic else found[each.name][-1]
        for each in given
    }


def _cast(value: sql.Composable, type_name: str) -> sql.Composable:
    return sql.SQL("{}::{}").format(value, sql.SQL(type_name))


def _body(routine: Routine, shape: Shape) -> sql.Composable:
    if shape.headers_only:
        return sql.SQL("''::text")
    if shape.media.raw and routine.media_type is not None:
        return sql.SQL("{}(_postgrest_t.pgrst_scalar)").format(sql.Identifier(*routine.media_type))
    if shape.media.kind is Kind.CSV:
        return sql.SQL(_CSV)
    if shape.media.kind is Kind.GEOJSON:
        return sql.SQL(_GEOJSON)
    scalar = not routine.returns_composite
    rows = "json_agg(_postgrest_t.pgrst_scalar)" if scalar else "json_agg(_postgrest_t)"
    single = shape.media.kind is Kind.OBJECT or not routine.returns_set
    if shape.media.kind is Kind.OBJECT and routine.returns_scalar_set:
        # Told apart from a scalar only by its column.
        rows = "json_agg(_postgrest_t)"
    value = f"{rows}->0" if single else rows
    value = f"json_strip_nulls({value})" if shape.media.stripped else value
    return sql.SQL(f"coalesce({value}, '{'null' if single else '[]'}')")


_CSV = """(
  select coalesce(string_agg(a.k, ','), '')
  from (
    select json_object_keys(r)::text as k
    from (select row_to_json(hh) as r from pgrst_source as hh limit 1) s
  ) a
) || E'\\n' || coalesce(
  string_agg(substring(_postgrest_t::text, 2, length(_postgrest_t::text) - 2), E'\\n'), ''
)"""
_GEOJSON = (
    "json_build_object('type', 'FeatureCollection', 'features', "
    "coalesce(json_agg(ST_AsGeoJSON(_postgrest_t)::json), '[]'))"
)
