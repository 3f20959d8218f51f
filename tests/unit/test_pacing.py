from __future__ import annotations

import heapq
import itertools
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlease.pacing import PollingDelay
from fairlease.settings import load_settings


def seeded(seed: float = 0) -> random.Random:
    return random.Random(seed)


ROUNDS = st.lists(st.sampled_from(["work", "held", "empty", "error"]), max_size=30)


class NoJitter(random.Random):
    """Dice that always land in the middle."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


def paced(**seconds: float) -> PollingDelay:
    return PollingDelay(NoJitter(), **seconds)


def after(delay: PollingDelay, found: str) -> float:
    return getattr(delay, f"after_{found}")()


def test_without_work_the_pause_doubles_from_idle_to_the_maximum() -> None:
    delay = paced()
    assert [delay.after_empty() for _ in range(6)] == [5, 10, 20, 40, 60, 60]


@pytest.mark.parametrize("found", ["work", "held"])
def test_work_and_held_work_start_the_doubling_anew(found: str) -> None:
    delay = paced()
    for _ in range(4):
        delay.after_empty()
    after(delay, found)
    assert delay.after_empty() == 5


def test_after_work_the_pause_is_the_busy_one_however_long_it_was_before() -> None:
    delay = paced()
    for _ in range(9):
        delay.after_empty()
    assert delay.after_work() == 0.1


def test_an_error_is_one_step_never_below_idle_and_repeated_ones_reach_the_maximum() -> None:
    delay = paced()
    delay.after_work()
    assert [delay.after_error() for _ in range(5)] == [5, 10, 20, 40, 60]
    mixed = paced()
    assert [mixed.after_empty(), mixed.after_error(), mixed.after_empty()] == [
        5,
        10,
        20,
    ]


def test_a_single_error_costs_one_idle_pause_between_two_busy_ones() -> None:
    delay = paced()
    pauses = [delay.after_work(), delay.after_error(), delay.after_work()]
    assert pauses == [0.1, 5, 0.1]


@given(rounds=ROUNDS, seed=st.integers())
def test_every_pause_is_its_plain_value_jittered_by_at_most_a_quarter(
    rounds: list[str], seed: int
) -> None:
    plain, jittered = paced(), PollingDelay(seeded(seed))
    for found in rounds:
        ratio = after(jittered, found) / after(plain, found)
        assert 0.75 <= ratio <= 1.25


def test_the_jitter_uses_its_whole_width() -> None:
    delay = PollingDelay(seeded(1))
    pauses = [delay.after_work() for _ in range(2000)]
    assert min(pauses) < 0.1 * 0.77
    assert max(pauses) > 0.1 * 1.23


def test_a_maximum_below_idle_counts_as_idle() -> None:
    delay = paced(idle_seconds=30, max_seconds=10)
    assert [delay.after_empty() for _ in range(3)] == [30, 30, 30]


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_pause_that_cannot_be_waited_is_refused(seconds: float) -> None:
    for name in ("busy_seconds", "idle_seconds"):
        with pytest.raises(ValueError, match=name):
            PollingDelay(seeded(), **{name: seconds})


def test_the_knobs_set_the_pace() -> None:
    environ = {"FAIRLEASE_POLL_BUSY_MS": "250", "FAIRLEASE_POLL_IDLE_SECONDS": "7"}
    delay = PollingDelay.from_knobs(load_settings(environ).knobs, NoJitter())
    assert (delay.after_work(), delay.after_empty(), delay.max_seconds) == (0.25, 7, 60)


def pickup_seconds(replicas: int, seed: int, *, spread: bool = True) -> float:
    """How long a message waits that comes when a fleet, started together, has long been idle."""
    dice = seeded(seed)
    of_replica = [seeded(dice.random() if spread else seed) for _ in range(replicas)]
    delays = [PollingDelay(dice) for dice in of_replica]
    polls = [(delay.start_offset(), index) for index, delay in enumerate(delays)]
    heapq.heapify(polls)
    arrival = dice.uniform(600, 1200)
    while polls[0][0] < arrival:
        at, index = heapq.heappop(polls)
        heapq.heappush(polls, (at + delays[index].after_empty(), index))
    return polls[0][0] - arrival


def median_pickup(replicas: int, *, spread: bool = True) -> float:
    return statistics.median(pickup_seconds(replicas, s, spread=spread) for s in range(300))


def test_ten_replicas_started_together_pick_work_up_many_times_sooner_than_one() -> None:
    # Of ten independent polls the first comes, in the median, 7.5 times as soon as a single one.
    assert 5 <= median_pickup(1) / median_pickup(10) <= 11
    assert median_pickup(1) / median_pickup(10, spread=False) < 1.5


def test_replicas_started_together_do_not_poll_together() -> None:
    delays = [PollingDelay(seeded(seed)) for seed in range(10)]
    offsets = sorted(delay.start_offset() for delay in delays)
    assert all(0 <= offset <= 5 for offset in offsets)
    assert offsets[-1] - offsets[0] > 2.5
    assert min(b - a for a, b in itertools.pairwise(offsets)) > 0


def test_one_failed_poll_of_one_replica_hardly_delays_the_fleet() -> None:
    def worked(fails: bool) -> int:
        delays = [PollingDelay(seeded(seed)) for seed in range(10)]
        clock = [delay.start_offset() for delay in delays]
        rounds = 0
        for index, delay in enumerate(delays):
            if fails and index == 0:
                clock[index] += delay.after_error()
            while clock[index] < 60:
                clock[index] += delay.after_work()
                rounds += 1
        return rounds

    assert worked(fails=True) >= 0.97 * worked(fails=False)
