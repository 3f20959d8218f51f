from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlease.messages.waiting import LONGEST_DELAY_SECONDS, seconds_until

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("when", "seconds"),
    [
        (1.5, 1.5),
        (-5.0, 0),
        (float("inf"), LONGEST_DELAY_SECONDS),
        (float("-inf"), 0),
        (1e300, LONGEST_DELAY_SECONDS),
        (10**400, LONGEST_DELAY_SECONDS),
        (-(10**400), 0),
        (timedelta(hours=1), 3600),
        (timedelta.max, LONGEST_DELAY_SECONDS),
        (timedelta.min, 0),
        (NOW + timedelta(seconds=90), 90),
        (datetime(2026, 12, 1, 12, 1), 60),  # noqa: DTZ001 - without a zone: UTC
        (datetime.max.replace(tzinfo=UTC), LONGEST_DELAY_SECONDS),
        (datetime.min.replace(tzinfo=UTC), 0),
        ("30", 30),
        (" 1.5 ", 1.5),
        ("9" * 400, LONGEST_DELAY_SECONDS),
        ("Tue, 01 Dec 2026 12:01:30 GMT", 90),
        ("Tue, 01 Dec 2026 13:01:30 +0100", 90),
        ("Tue, 01 Dec 2026 11:00:00 GMT", 0),
    ],
)
def test_every_time_is_seconds_from_now_to_a_year(when: Any, seconds: float) -> None:
    assert seconds_until(when, NOW) == seconds


@pytest.mark.parametrize(
    "when",
    [
        None,
        float("nan"),
        True,
        [],
        {},
        b"30",
        "",
        "soon",
        "-5",
        "1e3",
        "nan",
        "inf",
        "٣٠",
        "9" * 401,
        "Tue, 99 Dec 2026 25:61:61",
    ],
)
def test_what_says_no_time_is_none(when: Any) -> None:
    assert seconds_until(when, NOW) is None


@given(st.text(max_size=60) | st.floats() | st.integers() | st.timedeltas() | st.datetimes())
def test_nothing_breaks_it(when: Any) -> None:
    wait = seconds_until(when, NOW)
    assert wait is None or 0.0 <= wait <= LONGEST_DELAY_SECONDS
