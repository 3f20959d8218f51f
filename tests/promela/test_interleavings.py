from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .checker import Variant, missing_tools, search
from .variants import FAULTS, HOLDS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(bool(missing_tools()), reason="needs spin and cc")
QUICK_FAULTS = ("cap off by one", "lapsed row counted free unlocked")


def slow_unless(variant: Variant, *, quick: bool) -> object:
    return pytest.param(variant, id=variant.name, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize("variant", [slow_unless(v, quick=v is HOLDS[0]) for v in HOLDS])
def test_no_interleaving_breaks_a_cap_revives_a_slot_or_deadlocks(
    variant: Variant, tmp_path: Path
) -> None:
    found = search(variant, tmp_path)
    assert not found.violation
    assert found.exhaustive
    assert found.states > 10_000


@pytest.mark.parametrize("variant", [slow_unless(v, quick=v.name in QUICK_FAULTS) for v in FAULTS])
def test_a_planted_fault_is_found(variant: Variant, tmp_path: Path) -> None:
    assert variant.expected in search(variant, tmp_path).violation
