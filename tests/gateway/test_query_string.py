"""The little languages of the query string, and the exact words for what is wrong in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlease.local.gateway.deep_json import outer_shape
from fairlease.local.gateway.errors import GatewayError
from fairlease.local.gateway.hints import nearest
from fairlease.local.gateway.query import parse_query
from fairlease.local.gateway.query_grammar import Comparison, Field, Filter, OrderTerm
from fairlease.local.gateway.ranges import ALL_ROWS, Rows, wanted_rows

FIELD = "field name (* or [a..z0..9_$])"
LOGIC = "negation operator (not) or logic operator (and, or)"


@pytest.mark.parametrize(
    ("query", "column", "details"),
    [
        ("id=foo.1", 1, 'unexpected "f" expecting "not" or operator (eq, gt, ...)'),
        ("id=eq", 3, "unexpected end of input expecting operator (eq, gt, ...)"),
        ("id=in.1", 4, 'unexpected "1" expecting "("'),
        ("id=not.foo.1", 5, 'unexpected "f" expecting operator (eq, gt, ...)'),
        (
            "id=is.maybe",
            4,
            'unexpected "m" expecting isVal: (null, not_null, true, false, unknown)',
        ),
        ("order=", 1, f"unexpected end of input expecting {FIELD}"),
        ("order=id.asc.no", 8, 'unexpected "o" expecting "nullsfirst" or "nullslast"'),
        ("order=id.descx", 8, "unexpected 'x' expecting delimiter (.), \",\" or end of input"),
        ("columns=", 1, f"unexpected end of input expecting {FIELD}"),
        ("select=id::", 5, "unexpected end of input expecting letter or digit"),
        (
            "select=doc->>-1x",
            9,
            'unexpected \'x\' expecting digit, "->", "::", ".", "," or end of input',
        ),
        ("or=(id.eq.1", 11, 'unexpected end of input expecting "," or ")"'),
        (
            "and=()",
            5,
            f'unexpected ")" expecting {FIELD}, {LOGIC}',
        ),
    ],
)
def test_malformed_part_is_told_as_parsec_would(query: str, column: int, details: str) -> None:
    with pytest.raises(GatewayError) as refused:
        parse_query(query, arguments_allowed=False)
    error = refused.value
    assert (error.status, error.code) == (400, "PGRST100")
    assert error.message.endswith(f"(line 1, column {column})")
    assert error.details == details


def test_filters_of_every_form_are_read() -> None:
    query = parse_query(
        "a=not.in.(x,%22y,z%22)&b=like(any).{p*,q}&c->d->>0=is.NULL", arguments_allowed=False
    )
    assert query.filters == (
        Filter(Field("a"), Comparison("in", ["x", "y,z"], negated=True)),
        Filter(Field("b"), Comparison("like", "{p*,q}", modifier="any")),
        Filter(Field("c", (("->", "d"), ("->>", 0))), Comparison("is", "null")),
    )


def test_what_is_no_filter_is_an_argument_where_those_are_allowed() -> None:
    query = parse_query("a=1&b=eq.2&c=&d", arguments_allowed=True)
    assert query.arguments == (("a", "1"), ("c", ""))
    assert query.filters == (Filter(Field("b"), Comparison("eq", "2")),)


def test_order_is_read() -> None:
    query = parse_query("order=a.desc.nullsfirst,b->c", arguments_allowed=False)
    assert query.order == (
        OrderTerm(Field("a"), "desc", "nullsfirst"),
        OrderTerm(Field("b", (("->", "c"),))),
    )


@pytest.mark.parametrize(
    ("pairs", "header", "rows"),
    [
        ({}, None, ALL_ROWS),
        ({"limit": "2"}, None, Rows(0, 1)),
        ({"limit": "2", "offset": "3"}, None, Rows(3, 4)),
        ({"offset": "-4"}, None, ALL_ROWS),
        ({"limit": "x"}, None, ALL_ROWS),
        ({"limit": "0"}, "1-5", Rows(0, -1)),
        ({"limit": "4"}, "1-2", Rows(1, 2)),
        ({}, "3-", Rows(3)),
        ({}, "bytes=0-1", ALL_ROWS),
    ],
)
def test_wanted_rows(pairs: dict[str, str], header: str | None, rows: Rows) -> None:
    assert wanted_rows(pairs.items(), header) == rows


@pytest.mark.parametrize(
    ("pairs", "header"),
    [({"limit": "-1"}, None), ({}, "5-2"), ({"limit": "0", "offset": "1"}, None)],
)
def test_rows_that_cannot_be_are_refused(pairs: dict[str, str], header: str | None) -> None:
    with pytest.raises(GatewayError, match="Requested range not satisfiable"):
        wanted_rows(pairs.items(), header)


def test_hint_needs_similarity_in_groups_of_letters_and_in_edits() -> None:
    assert nearest(["send", "send_batch"], "sendbatch", 0.75) == "send_batch"
    assert nearest(["SendNow"], "sendnow", 0.75) == "SendNow"
    assert nearest(["send_batch"], "sendbulk", 0.75) is None
    assert nearest(["(queue_name)"], "(zzz)", 0.33) is None


@pytest.mark.parametrize(
    "text",
    ['{"a": [1, {"b": "\\u00e9"}], "c": -1.5e3}', "[]", '[{"a": null}, 5, []]', "true", ' "x" '],
)
def test_scanner_of_deep_json_agrees_with_the_standard_library(text: str) -> None:
    def cut(value: Any) -> Any:
        return type(value)() if isinstance(value, dict | list) else None

    value = json.loads(text)
    if isinstance(value, dict):
        value = dict.fromkeys(value)
    elif isinstance(value, list):
        value = [dict.fromkeys(each) if isinstance(each, dict) else cut(each) for each in value]
    else:
        value = None
    assert outer_shape(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1,]", '{"a"}', '{"a": 1,}', "[1 2]", "]", "[}", '{"a": 01}', '"\n"', "nul", "1 2"],
)
def test_scanner_of_deep_json_refuses_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        outer_shape(text)
