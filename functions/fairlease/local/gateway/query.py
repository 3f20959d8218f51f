"""The query string of a request: arguments of a GET, and what is wanted of the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlease.local.gateway import query_grammar as grammar
from fairlease.local.gateway.errors import GatewayError
from fairlease.local.gateway.parsing import ParseError
from fairlease.local.gateway.payload import form_pairs
from fairlease.local.gateway.query_grammar import (
    Field,
    Filter,
    Logic,
    OrderTerm,
    SelectedField,
    SelectedRelation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlease.local.gateway.parsing import P

Pair = tuple[str, str]

_RESERVED = ("select", "columns", "on_conflict")
_LOGIC = ("and", "or")
_ROWS = ("limit", "offset")
_RESERVED_ENDINGS = ("order", *_ROWS, *_LOGIC)


@dataclass(frozen=True)
class Query:
    """`embed_paths`: names of relations that some part of it is about."""

    pairs: tuple[tuple[str, str | None], ...] = ()
    arguments: tuple[Pair, ...] = ()
    columns: frozenset[str] | None = None
    select: tuple[SelectedField | SelectedRelation, ...] = (SelectedField(Field("*")),)
    filters: tuple[Filter | Logic, ...] = ()
    order: tuple[OrderTerm, ...] = ()
    embed_paths: tuple[str, ...] = ()

    @property
    def selected_fields(self) -> list[SelectedField]:
        return [item for item in self.select if isinstance(item, SelectedField)]

    @property
    def selects_all(self) -> bool:
        return self.select == Query.select

    @property
    def is_plain(self) -> bool:
        """Nothing is asked for but whole rows."""
        return self == Query(self.pairs, self.arguments, self.columns)


def parse_query(text: str, *, arguments_allowed: bool) -> Query:
    """`arguments_allowed`: what is no filter is an argument. Raises GatewayError PGRST100."""
    if not text:
        return Query()
    pairs = form_pairs(text)
    try:
        return _Reader(pairs, arguments_allowed=arguments_allowed).read()
    except ParseError as error:
        raise GatewayError(400, "PGRST100", error.message, error.details) from error


def check_plan(query: Query, relation: str, schema: str) -> None:
    """What PostgREST finds out before it asks the database. Raises GatewayError."""
    relations = [item for item in query.select if isinstance(item, SelectedRelation)]
    known = {item.alias or item.name for item in relations}
    for name in query.embed_paths:
        if name not in known:
            raise _not_embedded(name)
    if relations:
        raise _no_relationship(relations[0], relation, schema)
    for term in query.order:
        if term.relation is not None:
            raise _not_embedded(term.relation)
    if any(item.aggregate for item in query.selected_fields):
        raise GatewayError(400, "PGRST123", "Use of aggregate functions is not allowed")


class _Reader:
    """Reads the parts in PostgREST's order, so that the same error comes first."""

    def __init__(self, pairs: list[tuple[str, str | None]], *, arguments_allowed: bool) -> None:
        self._pairs = pairs
        self._given = [(name, value) for name, value in pairs if value is not None]
        self._arguments_allowed = arguments_allowed
        self._embed_paths: list[str] = []

    def read(self) -> Query:
        order = self._order()
        logic = self._logic()
        columns = self._named("columns", grammar.COLUMNS)
        select = self._named("select", grammar.SELECT)
        filters, arguments = self._filters()
        self._named("on_conflict", grammar.COLUMNS)
        for _, path in self._ending(*_ROWS, read=lambda name, _: name.split(".")[:-1]):
            self._embed_paths.extend(path[:1])
        return Query(
            pairs=tuple(self._pairs),
            arguments=tuple(arguments),
            columns=None if columns is None else frozenset(columns),
            select=tuple(select) if select is not None else Query.select,
            filters=(*filters, *logic),
            order=order,
            embed_paths=tuple(self._embed_paths),
        )

    def _ending(self, *words: str, read: Callable[[str, str], Any]) -> list[tuple[str, Any]]:
        return [
            (name, read(name, value)) for name, value in self._given if name.split(".")[-1] in words
        ]

    def _order(self) -> tuple[OrderTerm, ...]:
        terms: tuple[OrderTerm, ...] = ()
        for name, (path, found) in self._ending("order", read=self._order_terms):
            if name == "order":
                terms = tuple(found)
            self._embed_paths.extend(path[:1])
        return terms

    def _order_terms(self, name: str, value: str) -> tuple[list[str], list[OrderTerm]]:
        path, _ = grammar.TREE_PATH.parse(f"failed to parse tree path ({name})", name)
        return path, grammar.ORDER.parse(f"failed to parse order ({value})", value)

    def _logic(self) -> list[Logic]:
        trees: list[Logic] = []
        for _, (path, tree) in self._ending(*_LOGIC, read=self._logic_tree):
            if path:
                self._embed_paths.append(path[0])
            else:
                trees.append(tree)
        return trees

    def _logic_tree(self, name: str, value: str) -> tuple[list[str], Logic]:
        *path, operator = grammar.LOGIC_PATH.parse(f"failed to parse logic path ({name})", name)
        text = ("not." if "not" in path else "") + operator + value
        tree = grammar.LOGIC_TREE.parse(f"failed to parse logic tree ({value})", text)
        return [step for step in path if step != "not"], tree

    def _named(self, name: str, parser: P) -> Any:
        value = next((value for known, value in self._pairs if known == name), None)
        what = f"{name} parameter" if name != "select" else "select parameter"
        return None if value is None else parser.parse(f"failed to parse {what} ({value})", value)

    def _filters(self) -> tuple[list[Filter], list[Pair]]:
        filters: list[Filter] = []
        arguments: list[Pair] = []
        parser = grammar.COMPARISON_OR_ARGUMENT if self._arguments_allowed else grammar.COMPARISON
        for name, value in self._given:
            if name in _RESERVED or name.split(".")[-1] in _RESERVED_ENDINGS:
                continue
            path, field = grammar.TREE_PATH.parse(f"failed to parse tree path ({name})", name)
            comparison = parser.parse(f"failed to parse filter ({value})", value)
            if comparison is None:
                arguments.append((field.name, value))
            elif path:
                self._embed_paths.append(path[0])
            else:
                filters.append(Filter(field, comparison))
        return filters, arguments


def _not_embedded(name: str) -> GatewayError:
    return GatewayError(
        400,
        "PGRST108",
        f"'{name}' is not an embedded resource in this request",
        hint=f"Verify that '{name}' is included in the 'select' query parameter.",
    )


def _no_relationship(relation: SelectedRelation, parent: str, schema: str) -> GatewayError:
    using = f" using the hint '{relation.hint}'" if relation.hint is not None else ""
    return GatewayError(
        400,
        "PGRST200",
        f"Could not find a relationship between '{parent}' and '{relation.name}' in the schema "
        "cache",
        f"Searched for a foreign key relationship between '{parent}' and '{relation.name}'{using} "
        f"in the schema '{schema}', but no matches were found.",
    )
