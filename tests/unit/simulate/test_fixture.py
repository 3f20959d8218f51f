from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fairlease.errors import ConfigurationError
from fairlease.simulate.fixture import check_moments, load_durations, mean_slowest_of

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_fixture_has_the_moments_that_were_measured() -> None:
    durations = load_durations()

    assert len(durations) == 190
    assert sum(durations) / 190 == pytest.approx(48.2, abs=0.05)
    assert mean_slowest_of(durations, 4) == pytest.approx(68.5, abs=0.1)
    assert max(durations) == 94.9


def test_another_order_is_refused_because_batches_would_cost_something_else() -> None:
    with pytest.raises(ConfigurationError, match="slowest of four"):
        check_moments(tuple(sorted(load_durations())))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda d: d[:-1], "189 entries"),
        (lambda d: (d[0] + 20, *d[1:]), "mean"),
        (lambda d: tuple(95.1 if x == 94.9 else x for x in d), "worst"),
    ],
)
def test_the_moment_that_is_off_is_named(
    change: Callable[[tuple[float, ...]], tuple[float, ...]], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=named):
        check_moments(change(load_durations()))
