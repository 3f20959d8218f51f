from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from fairlease.errors import InvalidInput
from fairlease.messages.outgoing import (
    BATCH_LIMIT,
    BATCH_SIZE_LIMIT,
    DEPTH_LIMIT,
    check_batch,
    check_message,
)
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
        ({"x": [10**5000]}, r"\$\.x\[0\]: a number of more than 4299 digits"),
        ({"x": -(10**4300)}, r"\$\.x: a number of more than 4299 digits"),
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


@pytest.mark.parametrize(
    "delay", [-1, 1.5, float("nan"), float("inf"), 2**31, 10**12, True, None, "60"]
)
def test_a_delay_is_whole_seconds_that_end_before_the_calendar_does(delay: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^delay_seconds=.*: give whole seconds"):
        check_batch([NewMessage({})], delay)


def test_a_bad_message_of_many_is_named_by_index_and_path() -> None:
    messages = [NewMessage({"n": n}) for n in range(50)]
    messages[37] = NewMessage({"a": [{"b": "\x00"}]})
    with pytest.raises(InvalidInput, match=r"^message 37: \$\.a\[0\]\.b: contains NUL"):
        check_batch(messages, 0)


def test_headers_count_against_the_size() -> None:
    with pytest.raises(InvalidInput, match="the limit is 1048576"):
        check_message(NewMessage({}, headers={"h": "x" * 1_048_576}))


def test_more_than_one_call_can_carry_is_refused_with_the_limit() -> None:
    check_batch([NewMessage({})] * BATCH_LIMIT, 0)
    with pytest.raises(InvalidInput, match=r"^10001 messages, the limit of one call is 10000"):
        check_batch([NewMessage({})] * (BATCH_LIMIT + 1), 0)
    million = NewMessage({"x": "y" * 1_000_000})
    fits = BATCH_SIZE_LIMIT // 1_000_008
    with pytest.raises(InvalidInput, match=rf"^message {fits}: with it the call has more than"):
        check_batch([million] * (fits + 1), 0)
