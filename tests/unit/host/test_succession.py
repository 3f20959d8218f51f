from __future__ import annotations

from fairlease.host.succession import pause_before


def test_isolates_that_die_one_after_the_other_are_replaced_ever_more_slowly() -> None:
    assert [pause_before(deaths) for deaths in range(1, 9)] == [0, 1, 2, 4, 8, 16, 30, 30]
