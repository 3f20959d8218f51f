from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from fairlease.errors import InvalidInput
from fairlease.messages.outgoing import DEPTH_LIMIT, check_message
from fairlease.model import NewMessage


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"a": "x\x00y"}, r"\$\.a: contains NUL"),
        ({"a": [1, {"b": "\ud800"}]}, r"\$\.a\[1\]\.b: contains a lone surrogate"),
        ({"a\x00": 1}, r"\$ \(key\): contains NUL"),
        ({"x": float("nan")}, r"\$\.x: nan is not JSON"),
        ({"x": float("inf")}, r"\$\.x: inf is not JSON"),
        ({"x": Decimal("1e400")}, r"\$\.x: Decimal is not JSON"),
        ({1: 2}, r"\$: the key 1 is no text"),
        ({"x": b"bytes"}, r"\$\.x: bytes is not JSON"),
        ({"x": "y" * 2_000_000}, r"\$: the message has 2000009 bytes, the limit is 1048576"),
        (nested(DEPTH_LIMIT + 2), "nested deeper than 200"),
        (nested(10_000), "nested deeper than 200"),
    ],
)
def test_what_the_database_would_refuse_is_refused_before_the_wire_by_path(
    body: Any, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        check_message(NewMessage(body))


@pytest.mark.parametrize(
    "body", [None, "text", [], 42, {"id": 2**63}, {"id": 10**400}, {"s": "\U0001f600 שלום"}]
)
def test_every_json_value_may_be_sent_and_integers_have_any_size(body: Any) -> None:
    check_message(NewMessage(body))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (NewMessage({}, key=""), "key: give 1 to 512 bytes"),
        (NewMessage({}, key="é" * 257), "key: give 1 to 512 bytes"),
        (NewMessage([], key="k"), "key: only a message that is a JSON object"),
        (NewMessage({}, org="a\x00"), "org: contains NUL"),
        (NewMessage({}, headers={"h": "\ud800"}), r"headers\.h: contains a lone surrogate"),
    ],
)
def test_a_bad_key_org_or_header_is_named(message: NewMessage, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        check_message(message)
