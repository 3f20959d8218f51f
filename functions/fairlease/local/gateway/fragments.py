"""SQL for what the query string wants of a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from fairlease.local.gateway.query_grammar import Filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlease.local.gateway.query_grammar import (
        Comparison,
        Field,
        Logic,
        OrderTerm,
        SelectedField,
    )
    from fairlease.local.gateway.ranges import Rows

_OPERATORS = {
    "eq": "=",
    "neq": "<>",
    "gt": ">",
    "gte": ">=",
    "lt": "<",
    "lte": "<=",
    "like": "like",
    "ilike": "ilike",
    "match": "~",
    "imatch": "~*",
    "cs": "@>",
    "cd": "<@",
    "ov": "&&",
    "sl": "<<",
    "sr": ">>",
    "nxr": "&<",
    "nxl": "&>",
    "adj": "-|-",
    "isdistinct": "is distinct from",
}
_SEARCHES = {
    "fts": "to_tsquery",
    "plfts": "plainto_tsquery",
    "phfts": "phraseto_tsquery",
    "wfts": "websearch_to_tsquery",
}
_TRILEANS = {"not_null": "not null"}


class Parameters:
    """Values in the order in which `$1`, `$2`, ... stand for them."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def add(self, value: bytes | str) -> sql.Composable:
        self.values.append(value.encode() if isinstance(value, str) else value)
        return sql.SQL(f"${len(self.values)}")


def array_literal(values: Iterable[str]) -> str:
    escaped = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
    quoted = ",".join(f'"{value}"' for value in escaped)
    return f"{{{quoted}}}"


def column(relation: str, name: str) -> sql.Composable:
    if name == "*":
        return sql.SQL("{}.*").format(sql.Identifier(relation))
    return sql.Identifier(relation, name)


def select_list(
    relation: str, fields: Sequence[SelectedField], parameters: Parameters
) -> sql.Composable:
    items = [_selected(relation, each, parameters) for each in fields]
    return sql.SQL(", ").join(items) if items else column(relation, "*")


def condition(relation: str, part: Filter | Logic, parameters: Parameters) -> sql.Composable:
    if isinstance(part, Filter):
        return _filter(relation, part, parameters)
    members = [condition(relation, each, parameters) for each in part.members]
    text = "not ({})" if part.negated else "({})"
    return sql.SQL(text).format(sql.SQL(f" {part.operator} ").join(members))


def where(relation: str, parts: Sequence[Filter | Logic], parameters: Parameters) -> sql.Composable:
    if not parts:
        return sql.SQL("")
    conditions = [condition(relation, part, parameters) for part in parts]
    return sql.SQL(" where ") + sql.SQL(" and ").join(conditions)


def order_by(relation: str, terms: Sequence[OrderTerm], parameters: Parameters) -> sql.Composable:
    if not terms:
        return sql.SQL("")
    return sql.SQL(" order by ") + sql.SQL(", ").join(
        [_order_term(relation, term, parameters) for term in terms]
    )


def limit_and_offset(rows: Rows, parameters: Parameters) -> sql.Composable:
    if rows.limit is None and rows.first == 0:
        return sql.SQL("")
    limit = sql.SQL("all") if rows.limit is None else parameters.add(str(rows.limit))
    return sql.SQL(" limit {} offset {}").format(limit, parameters.add(str(rows.first)))


def filtered_columns(parts: Iterable[Filter | Logic]) -> set[str]:
    names: set[str] = set()
    for part in parts:
        names |= {part.field.name} if isinstance(part, Filter) else filtered_columns(part.members)
    return names


def _field(relation: str, field: Field, parameters: Parameters) -> sql.Composable:
    if not field.path:
        return column(relation, field.name)
    composed = sql.SQL("to_jsonb({})").format(column(relation, field.name))
    for arrow, step in field.path:
        composed += sql.SQL(arrow) + parameters.add(str(step))
        if isinstance(step, int):
            composed += sql.SQL("::int")
    return composed


def _selected(relation: str, item: SelectedField, parameters: Parameters) -> sql.Composable:
    composed = _field(relation, item.field, parameters)
    if item.cast is not None:
        # Not an identifier: `double precision` is two words. The grammar lets only names through.
        composed = sql.SQL("cast({} as {})").format(composed, sql.SQL(item.cast))
    alias = item.alias if item.alias is not None else _last_key(item.field)
    if alias is None:
        return composed
    return sql.SQL("{} as {}").format(composed, sql.Identifier(alias))


def _last_key(field: Field) -> str | None:
    if not field.path:
        return None
    keys = [step for _, step in field.path if isinstance(step, str)]
    return keys[-1] if keys else field.name


def _filter(relation: str, part: Filter, parameters: Parameters) -> sql.Composable:
    comparison = part.comparison
    left = _field(relation, part.field, parameters)
    if comparison.operator in _SEARCHES:
        compared = _search(left, comparison, parameters)
    else:
        compared = left + sql.SQL(" ") + _right(comparison, parameters)
    return sql.SQL("not {}").format(compared) if comparison.negated else compared


def _right(comparison: Comparison, parameters: Parameters) -> sql.Composable:
    operator, value = comparison.operator, comparison.value
    if operator == "is":
        return sql.SQL(f"is {_TRILEANS.get(value, value)}")
    if operator == "in":
        values = [] if value == [""] else value
        return sql.SQL("= any ({})").format(parameters.add(array_literal(values)))
    if operator in {"like", "ilike"}:
        value = value.replace("*", "%")
    found = parameters.add(value)
    if comparison.modifier is not None:
        found = sql.SQL(f"{comparison.modifier}({{}})").format(found)
    return sql.SQL(f"{_OPERATORS[operator]} ") + found


def _search(left: sql.Composable, comparison: Comparison, parameters: Parameters) -> sql.Composable:
    arguments = [parameters.add(comparison.value)]
    vector = sql.SQL("to_tsvector({})").format(left)
    if comparison.modifier is not None:
        vector = sql.SQL("to_tsvector({}, {})").format(parameters.add(comparison.modifier), left)
        arguments.insert(0, parameters.add(comparison.modifier))
    function = sql.SQL(_SEARCHES[comparison.operator])
    return sql.SQL("{} @@ {}({})").format(vector, function, sql.SQL(", ").join(arguments))


def _order_term(relation: str, term: OrderTerm, parameters: Parameters) -> sql.Composable:
    composed = _field(relation, term.field, parameters)
    if term.direction is not None:
        composed += sql.SQL(f" {term.direction}")
    if term.nulls is not None:
        composed += sql.SQL({"nullsfirst": " nulls first", "nullslast": " nulls last"}[term.nulls])
    return composed
