from __future__ import annotations

import pytest

from fairlease.demo.utilisation import Sample, Span, in_flight_seconds, resident, utilisation

SERIES = [(0.0, 4), (10.0, 2), (20.0, 0)]


def sample(at: float, *, waiting: int, slots: int) -> Sample:
    return Sample(at, {"a": waiting}, {}, {"a": slots}, {})


def test_the_area_is_counted_within_the_span_only() -> None:
    assert in_flight_seconds(SERIES, Span(5, 15)) == pytest.approx(5 * 4 + 5 * 2)
    assert in_flight_seconds(SERIES, Span(18, 40)) == pytest.approx(2 * 2)
    assert in_flight_seconds([], Span(0, 1)) == 0


def test_time_counts_only_while_the_slot_is_held_and_work_is_visible() -> None:
    samples = [
        sample(0, waiting=3, slots=1),
        sample(1, waiting=3, slots=0),
        sample(2, waiting=0, slots=1),
        sample(3, waiting=1, slots=1),
        sample(4, waiting=1, slots=1),
    ]
    assert resident(samples, "a") == [Span(0, 1), Span(3, 4)]


def test_utilisation_is_used_seconds_over_available_seconds() -> None:
    assert utilisation(SERIES, [Span(0, 20)], n=4) == pytest.approx(60 / 80)
    assert utilisation(SERIES, [], n=4) == 0
