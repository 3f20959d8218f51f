"""The little languages of the query string: fields, filters, order, boolean logic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairlease.local.gateway.parsing import (
    ANY_CHARACTER,
    DIGIT,
    END,
    LETTER,
    P,
    ahead,
    attempt,
    char,
    lazy,
    many,
    many1,
    none_of,
    not_followed_by,
    nothing,
    one_of,
    optional,
    pure,
    separated,
    separated1,
    string,
    text_of,
)


@dataclass(frozen=True)
class Field:
    """A column and a path into its JSON: arrow, then key (text) or index (int)."""

    name: str
    path: tuple[tuple[str, str | int], ...] = ()


@dataclass(frozen=True)
class Comparison:
    """`operator` as in the query string; `value` is a list for `in`.

    `modifier`: `any` or `all`, or the language of a text search.
    """

    operator: str
    value: Any
    negated: bool = False
    modifier: str | None = None


@dataclass(frozen=True)
class Filter:
    field: Field
    comparison: Comparison


@dataclass(frozen=True)
class Logic:
    """`and` or `or` over filters and more logic."""

    operator: str
    negated: bool
    members: tuple[Filter | Logic, ...]


@dataclass(frozen=True)
class SelectedField:
    field: Field
    cast: str | None = None
    alias: str | None = None
    aggregate: bool = False


@dataclass(frozen=True)
class SelectedRelation:
    """What would be embedded."""

    name: str
    hint: str | None = None
    alias: str | None = None


@dataclass(frozen=True)
class OrderTerm:
    """`relation`: ordered by a column of what would be embedded."""

    field: Field
    direction: str | None = None
    nulls: str | None = None
    relation: str | None = None


def _lexeme(parser: P) -> P:
    blanks = many(one_of(" \t"))
    return blanks >> parser << blanks


def _keyword(text: str, value: Any = None) -> P:
    return attempt(string(text).map(lambda _: text if value is None else value))


def _by_dash(parser: P) -> P:
    dash = attempt(char("-") << not_followed_by(char(">")))
    return separated1(parser, dash).map("-".join)


_DELIMITER = char(".").label("delimiter (.)")
_IDENTIFIER = text_of(many1(LETTER | DIGIT | one_of("_ $"))).map(str.strip)
_QUOTED = char('"') >> text_of(many(none_of('\\"') | (char("\\") >> ANY_CHARACTER))) << char('"')
_LIST_END = not_followed_by(none_of(",)"))
_IN_LIST = text_of(many(none_of(",)")))

FIELD_NAME = (_QUOTED | _by_dash(_IDENTIFIER)).label("field name (* or [a..z0..9_$])")

_KEY_NAME = _QUOTED | _by_dash(text_of(many1(none_of("(-:.,>)"))).map(str.strip))
_INDEX_END = (
    attempt(ahead(string("->")))
    | attempt(ahead(string("::")))
    | attempt(ahead(string(".")))
    | attempt(ahead(string(",")))
    | attempt(END)
)
_INDEX = optional(char("-"), "").bind(
    lambda sign: text_of(many1(DIGIT)).map(lambda n: int(sign + n))
)
_OPERAND = attempt(_INDEX << _INDEX_END) | attempt(
    _KEY_NAME.label("any non reserved character different from: .,>()")
)
_ARROW = _keyword("->>") | _keyword("->")
_PATH = many(_ARROW.bind(lambda arrow: _OPERAND.map(lambda operand: (arrow, operand)))).map(tuple)
_FIELD = _lexeme(
    FIELD_NAME.bind(lambda name: optional(_PATH, ()).map(lambda path: Field(name, path)))
)


def _comparison(value: P) -> P:
    negated = attempt((string("not") >> _DELIMITER).map(lambda _: True)) | pure(False)  # noqa: FBT003
    return negated.bind(lambda is_not: _operation(value).map(lambda make: make(is_not)))


def _operation(value: P) -> P:
    def compare(operator: str, modifier: str | None = None) -> P:
        return value.map(lambda found: _making(operator, found, modifier))

    quantifier = char("(") >> (_keyword("any") | string("all")) << char(")")
    language = char("(") >> _IDENTIFIER << char(")")
    searches = _choice("fts", "plfts", "phfts", "wfts")
    simple = _choice("neq", "cs", "cd", "ov", "sl", "sr", "nxr", "nxl", "adj")
    quantified = _choice("eq", "gte", "gt", "lte", "lt", "like", "ilike", "match", "imatch")

    def modified(operators: P, modifier: P) -> P:
        return operators.bind(
            lambda name: optional(attempt(modifier)).bind(
                lambda found: _DELIMITER >> compare(name, found)
            )
        )

    return (
        (attempt(string("in") >> _DELIMITER) >> _LIST.map(lambda found: _making("in", found)))
        | (attempt(string("is") >> _DELIMITER) >> _TRILEAN.map(lambda found: _making("is", found)))
        | (attempt(string("isdistinct") >> _DELIMITER) >> compare("isdistinct"))
        | attempt(modified(searches, language))
        | attempt(simple.label(_UNKNOWN).bind(lambda name: _DELIMITER >> compare(name)))
        | attempt(modified(quantified.label(_UNKNOWN), quantifier))
    ).label("operator (eq, gt, ...)")


_UNKNOWN = "unknown single value operator"


def _making(operator: str, value: Any, modifier: str | None = None) -> Any:
    return lambda negated: Comparison(operator, value, negated, modifier)


def _choice(*words: str) -> P:
    parser = _keyword(words[0])
    for word in words[1:]:
        parser = parser | _keyword(word)
    return parser


def _any_case(word: str) -> P:
    parser = pure("")
    for letter in word:
        parser = parser >> (char(letter) | char(letter.upper()))
    return attempt(parser.map(lambda _: word))


_LIST = (
    _lexeme(char("(")) >> separated1(attempt(_QUOTED << _LIST_END) | _IN_LIST, char(","))
) << _lexeme(char(")"))
_TRILEAN = (
    _any_case("null")
    | _any_case("not_null")
    | _any_case("true")
    | _any_case("false")
    | _any_case("unknown")
).label("isVal: (null, not_null, true, false, unknown)")

_BRACES = (
    string("{")
    .bind(lambda start: text_of(many(none_of("{}"))).map(lambda inner: start + inner))
    .bind(lambda text: string("}").map(lambda end: text + end))
)
_LOGIC_VALUE = attempt(_QUOTED << _LIST_END) | attempt(_BRACES) | _IN_LIST

COMPARISON = _comparison(text_of(many(ANY_CHARACTER)))
COMPARISON_OR_ARGUMENT = COMPARISON | pure(None)

TREE_PATH = separated1(FIELD_NAME, _DELIMITER).bind(
    lambda names: optional(_PATH, ()).map(lambda path: (names[:-1], Field(names[-1], path)))
)
LOGIC_PATH = separated1(FIELD_NAME, _DELIMITER)
COLUMNS = separated1(FIELD_NAME, _lexeme(char(",")))

_LOGIC_FILTER = (_FIELD << _DELIMITER).bind(
    lambda field: _comparison(_LOGIC_VALUE).map(lambda found: Filter(field, found))
)
_NOT = (attempt((string("not") >> _DELIMITER).map(lambda _: True)) | pure(False)).label(  # noqa: FBT003
    "negation operator (not)"
)
_AND_OR = (_keyword("and") | string("or")).label("logic operator (and, or)")
LOGIC_TREE: P = attempt(_LOGIC_FILTER) | _NOT.bind(
    lambda negated: _AND_OR.bind(
        lambda operator: (
            (_lexeme(char("(")) >> separated1(lazy(lambda: LOGIC_TREE), _lexeme(char(","))))
            << _lexeme(char(")"))
        ).map(lambda members: Logic(operator, negated, tuple(members)))
    )
)

_ORDER_END = attempt(ahead(char(","))) | attempt(END)
_DIRECTION = attempt(_DELIMITER >> string("asc")) | attempt(_DELIMITER >> string("desc"))
_NULLS = attempt(_DELIMITER >> string("nullsfirst")) | attempt(_DELIMITER >> string("nullslast"))


def _order_term(field: P, relation: str | None = None) -> P:
    nulls = (optional(_NULLS) << _ORDER_END) | _ORDER_END
    return field.bind(
        lambda found: optional(_DIRECTION).bind(
            lambda direction: nulls.map(lambda order: OrderTerm(found, direction, order, relation))
        )
    )


ORDER = separated1(
    _lexeme(
        attempt(FIELD_NAME.bind(lambda name: _order_term(char("(") >> _FIELD << char(")"), name)))
        | _order_term(_FIELD)
    ),
    char(","),
)

_ALIAS = optional(attempt(FIELD_NAME << (char(":") >> not_followed_by(char(":")))))
_SELECT_END = attempt(ahead(string(")"))) | attempt(ahead(string(","))) | attempt(END)
_CAST = optional(string("::") >> _IDENTIFIER)
_AGGREGATE = optional(
    attempt(
        (
            char(".")
            >> (string("sum") | string("avg") | string("count") | _keyword("max") | _keyword("min"))
        )
        << string("()")
    )
)
_STAR = (string("*") << _SELECT_END).map(lambda _: SelectedField(Field("*")))
_COUNT = _ALIAS.bind(
    lambda alias: ((string("count()") >> _CAST) << _SELECT_END).map(
        lambda cast: SelectedField(Field("*"), cast, alias, aggregate=True)
    )
)
_PLAIN = _ALIAS.bind(
    lambda alias: _FIELD.bind(
        lambda field: _CAST.bind(
            lambda cast: _AGGREGATE.bind(
                lambda aggregate: (_CAST << _SELECT_END).map(
                    lambda _: SelectedField(field, cast, alias, aggregate is not None)
                )
            )
        )
    )
)
_SELECTED_FIELD = _lexeme(attempt(_STAR) | attempt(_COUNT) | _PLAIN)

_EMBED = char("!") >> (
    _keyword("left", ()) | _keyword("inner", ()) | attempt(FIELD_NAME.map(lambda hint: (hint,)))
)
_EMBEDS = optional(_EMBED, ()).bind(
    lambda first: optional(_EMBED, ()).map(lambda second: next(iter((*first, *second)), None))
)
_OPENING = attempt(ahead(string("(")))
_MEMBERS = char("(") >> lazy(lambda: SELECT) << char(")")


def _not_count(name: str) -> P:
    return nothing() if name == "count" else pure(name)


_SPREAD = _lexeme(
    (string("...") >> FIELD_NAME).bind(
        lambda name: (_EMBEDS << _OPENING).map(lambda hint: SelectedRelation(name, hint))
    )
)
_RELATION = _lexeme(
    _ALIAS.bind(
        lambda alias: FIELD_NAME.bind(_not_count).bind(
            lambda name: (_EMBEDS << _OPENING).map(lambda hint: SelectedRelation(name, hint, alias))
        )
    )
)
SELECT: P = separated(
    (attempt(_SPREAD) << _MEMBERS) | (attempt(_RELATION) << _MEMBERS) | _SELECTED_FIELD,
    _lexeme(char(",")),
)
