"""`org` is a label for the 50 orgs with most messages; however many there are."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fairlease.telemetry.counting import (
    MOST_PENDING,
    ORGS_RANKED,
    ORGS_SHOWN,
    OTHER,
    CountsByOrg,
    label,
)

LABELS = ("q", "m", "done")


def shown(counts: CountsByOrg) -> dict[str, int]:
    return {org: count for _, org, count in counts.look()}


def test_the_fifty_largest_of_ten_thousand_orgs_have_a_label() -> None:
    counts, dice = CountsByOrg(), random.Random(7)
    sent = [f"large-{n}" for n in range(50) for _ in range(40 + n)]
    sent += [f"small-{n}" for n in range(10_000)]
    dice.shuffle(sent)
    for org in sent:
        counts.add(LABELS, org)
    found = shown(counts)
    assert set(found) == {f"large-{n}" for n in range(50)} | {OTHER}
    assert sum(found.values()) == len(sent)


def test_an_org_that_becomes_large_gets_the_label_of_one_that_is_not_any_more() -> None:
    counts = CountsByOrg()
    for n in range(ORGS_SHOWN):
        counts.add(LABELS, f"early-{n}")
    assert len(shown(counts)) == ORGS_SHOWN
    for _ in range(5):
        counts.add(LABELS, "late")
    found = shown(counts)
    assert found["late"] == 5
    assert len(found) == ORGS_SHOWN


def test_orgs_without_end_take_no_memory_without_end() -> None:
    counts = CountsByOrg()
    for n in range(3 * MOST_PENDING):
        counts.add(LABELS, f"org-{n}")
    shown(counts)
    assert len(counts._ranked) <= ORGS_RANKED
    assert len(counts._pending) <= MOST_PENDING
    assert len(counts._shown) <= ORGS_SHOWN + 1


@given(st.lists(st.lists(st.integers(0, 80), max_size=200), max_size=8))
def test_no_counter_falls_while_it_has_its_label_and_few_orgs_are_exact(
    rounds: list[list[int]],
) -> None:
    counts, sent, before = CountsByOrg(), Counter[str](), dict[str, int]()
    for orgs in rounds:
        for org in orgs:
            counts.add(LABELS, str(org))
            sent[str(org)] += 1
        found = shown(counts)
        assert len(set(found) - {OTHER}) <= ORGS_SHOWN
        assert found.get(OTHER, 0) >= before.get(OTHER, 0)
        assert all(found[org] >= before[org] for org in found if org in before)
        if len(sent) <= ORGS_SHOWN:
            assert found == dict(sent)
        before = found


def test_an_org_called_other_is_among_the_others() -> None:
    counts = CountsByOrg()
    for _ in range(3):
        counts.add(LABELS, OTHER)
    assert shown(counts) == {OTHER: 3}


def test_a_label_is_short_encodable_and_its_own() -> None:
    long = ["x" * 10_000, "x" * 9_999 + "y"]
    assert len({label(text) for text in long}) == 2
    assert all(len(label(text)) <= 120 for text in long)
    assert label("\ud800") == "\\ud800"
    assert label("عربى/'\"😀") == "عربى/'\"😀"
