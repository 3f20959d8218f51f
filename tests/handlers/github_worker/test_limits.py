from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from github_worker.limits import limit_of, wait_seconds

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
SPENT = {"x-ratelimit-remaining": "0"}
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes."
PRIMARY = "API rate limit exceeded for installation ID 7."


def http_date(seconds: float) -> str:
    return format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)


def epoch(seconds: float) -> str:
    return str(int(NOW.timestamp() + seconds))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30.0),
        (" 30 ", 30.0),
        ("1.5", 1.5),
        ("0", 1.0),
        ("9" * 300, 86_400.0),
        (http_date(90), 90.0),
        (http_date(-90), 1.0),
        (http_date(400 * 86_400), 86_400.0),
        ("Tue, 01 Dec 2026 13:00:00 +0100", 1.0),
        ("Tue, 01 Dec 2026 12:00:10 -0000", 10.0),
        (http_date(-2 * 86_400), None),
        ("-5", None),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("1e3", None),
        ("٣٠", None),
        ("Tue, 99 Dec 2026 25:61:61 GMT", None),
        ("9" * 500, None),
    ],
)
def test_retry_after_is_seconds_or_a_date_within_bounds(text: str, seconds: float | None) -> None:
    assert wait_seconds(text, NOW) == seconds


@given(st.text(max_size=60))
def test_no_retry_after_breaks_the_worker(text: str) -> None:
    assert (wait := wait_seconds(text, NOW)) is None or 1.0 <= wait <= 86_400.0


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize(
    ("headers", "said", "kind", "seconds"),
    [
        ({"retry-after": "17"}, SECONDARY, "secondary", 17.0),
        ({"retry-after": "17"}, "", "secondary", 17.0),
        ({}, SECONDARY, "secondary", None),
        ({"retry-after": "soon"}, SECONDARY, "secondary", None),
        (
            {**SPENT, "x-ratelimit-reset": epoch(900)},
            PRIMARY,
            "primary",
            900.0,
        ),
        (
            {**SPENT, "x-ratelimit-reset": epoch(9)},
            SECONDARY,
            "secondary",
            9.0,
        ),
        ({**SPENT, "x-ratelimit-reset": epoch(-3)}, "", "primary", 1.0),
        ({**SPENT, "x-ratelimit-reset": "0"}, "", "primary", None),
        ({**SPENT, "x-ratelimit-reset": "-9"}, "", "primary", None),
        ({**SPENT, "x-ratelimit-reset": "x"}, "", "primary", None),
        (SPENT, "", "primary", None),
        ({**SPENT, "retry-after": "5"}, PRIMARY, "primary", 5.0),
        ({"x-ratelimit-remaining": "4999"}, PRIMARY, "primary", None),
    ],
)
def test_a_limit_holds_up_the_whole_org_for_as_long_as_github_says(
    status: int, headers: dict[str, str], said: str, kind: str, seconds: float | None
) -> None:
    limit = limit_of(status, headers, said, NOW)

    assert limit is not None
    assert (limit.scope, limit.retry_after) == ("org", seconds)
    assert limit.reason == f"GitHub's {kind} rate limit ({status})"


def test_the_servers_own_clock_counts_where_it_is_told() -> None:
    skewed = {"date": http_date(-600), **SPENT}

    by_reset = limit_of(403, {**skewed, "x-ratelimit-reset": epoch(-570)}, "", NOW)
    by_date = limit_of(403, {**skewed, "retry-after": http_date(-540)}, "", NOW)

    assert by_reset is not None
    assert by_date is not None
    assert (by_reset.retry_after, by_date.retry_after) == (30.0, 60.0)


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (403, {}, "Resource not accessible by integration"),
        (403, {"x-ratelimit-remaining": "10"}, "Repository was archived so is read-only."),
        (404, {"retry-after": "5"}, SECONDARY),
        (503, {"retry-after": "5"}, ""),
        (200, SPENT, ""),
    ],
)
def test_anything_else_is_no_limit(status: int, headers: dict[str, str], said: str) -> None:
    assert limit_of(status, headers, said, NOW) is None


def test_a_429_is_a_limit_whatever_it_says() -> None:
    limit = limit_of(429, {}, "", NOW)

    assert limit is not None
    assert limit.retry_after is None
