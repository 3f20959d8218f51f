from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlease import Dead, RateLimited, Retry, Snooze
from fairlease.errors import ConfigurationError
from fairlease.messages.retry import backoff_seconds, judge
from fairlease.model import DeadLetter, Delivery, Outcome, RetryLater, SnoozeUntil

NOW = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
DELIVERY = Delivery(7, 2)


def outcome_of(raised: BaseException, attempt: int = 1, policy: Retry | None = None) -> Outcome:
    return judge(
        raised,
        delivery=DELIVERY,
        attempt=attempt,
        policy=policy or Retry(max_attempts=3, base=10, cap=100),
        now=NOW,
        dice=random.Random(1),
    )


@given(
    attempt=st.integers(min_value=0, max_value=10**6),
    base=st.floats(0, 1e6),
    cap=st.floats(1e6, 3e7),
    seed=st.integers(),
)
def test_backoff_stays_within_its_cap_for_any_attempt(
    attempt: int, base: float, cap: float, seed: int
) -> None:
    delay = backoff_seconds(Retry(base=base, cap=cap), attempt, random.Random(seed))
    assert 0 <= delay <= min(cap, base * 2.0 ** min(max(attempt - 1, 0), 60))


def test_backoff_is_full_jitter_and_doubles_its_ceiling() -> None:
    dice = random.Random(3)
    policy = Retry(base=10, cap=1000)
    for attempt, ceiling in [(1, 10), (2, 20), (4, 80), (9, 1000)]:
        drawn = [backoff_seconds(policy, attempt, dice) for _ in range(400)]
        assert min(drawn) < ceiling * 0.05
        assert ceiling * 0.95 < max(drawn) <= ceiling


def test_an_exception_is_a_retry_with_its_traceback_until_attempts_are_exhausted() -> None:
    first = outcome_of(ValueError("bad\x00"), attempt=2)
    assert isinstance(first, RetryLater)
    assert "ValueError: bad\\x00" in first.error
    last = outcome_of(ValueError("bad"), attempt=3)
    assert isinstance(last, DeadLetter)
    assert last.reason == "attempts exhausted (3 of 3)"


def test_lone_surrogates_in_an_exception_are_stored_escaped() -> None:
    outcome = outcome_of(ValueError("\ud800"))
    assert isinstance(outcome, RetryLater)
    assert "\\ud800" in outcome.error


def test_an_exception_that_cannot_be_shown_is_still_named() -> None:
    class Shy(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    outcome = outcome_of(Shy())
    assert isinstance(outcome, RetryLater)
    assert "Shy" in outcome.error


def test_a_retry_verdict_replaces_the_delay_within_the_cap() -> None:
    assert outcome_of(Retry(after=7)) == RetryLater(DELIVERY, after_ms=7000, error=_error(7))
    assert outcome_of(Retry(after=7e9)).after_ms == 100_000  # type: ignore[attr-defined]
    assert outcome_of(Retry(after=-5)).after_ms == 0  # type: ignore[attr-defined]


def _error(after: float) -> str:
    outcome = outcome_of(Retry(after=after))
    assert isinstance(outcome, RetryLater)
    return outcome.error


def test_snooze_and_dead_say_what_they_mean() -> None:
    assert outcome_of(Snooze(90)) == SnoozeUntil(DELIVERY, after_ms=90_000)
    assert outcome_of(Snooze(NOW + timedelta(minutes=1))) == SnoozeUntil(DELIVERY, after_ms=60_000)
    assert outcome_of(Dead("no such org")) == DeadLetter(DELIVERY, reason="no such org")


def test_a_rate_limit_of_the_org_opens_its_circuit_and_of_a_method_does_not() -> None:
    limited = outcome_of(RateLimited(30))
    assert isinstance(limited, SnoozeUntil)
    assert limited.after_ms == 30_000
    assert limited.limit is not None
    assert limited.limit.retry_after_seconds == 30
    assert outcome_of(RateLimited(30, scope="method")).limit is None
    assert outcome_of(RateLimited()).limit.retry_after_seconds == 60  # type: ignore[union-attr]
    for over in (0, -5, "0", "Thu, 01 Jan 1970 00:00:00 GMT"):
        assert outcome_of(RateLimited(over)).limit.retry_after_seconds == 1  # type: ignore[union-attr]


def test_a_verdict_that_cannot_be_read_is_a_counted_failure() -> None:
    class Odd(Dead):
        def __getattribute__(self, name: str) -> Any:
            if name == "reason":
                raise KeyError(name)
            return super().__getattribute__(name)

    assert isinstance(outcome_of(Odd("x"), attempt=1), RetryLater)
    assert isinstance(outcome_of(Odd("x"), attempt=3), DeadLetter)


def test_a_scope_that_is_none_is_refused_where_it_is_raised() -> None:
    with pytest.raises(ConfigurationError, match="give 'org' or 'method'"):
        RateLimited(5, scope="orgs")  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [{"max_attempts": 0}, {"base": -1}, {"base": 9, "cap": 1}])
def test_a_policy_that_cannot_work_is_refused_at_registration(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="Retry: "):
        Retry(**bad)  # type: ignore[arg-type]
