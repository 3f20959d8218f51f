"""All of them, in the order of the map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import asking, bounds, claims, elsewhere, keeping, settling, skew, stopping

if TYPE_CHECKING:
    from .fault import Fault

FAULTS: tuple[Fault, ...] = (
    *claims.FAULTS,
    *bounds.FAULTS,
    *keeping.FAULTS,
    *settling.FAULTS,
    *stopping.FAULTS,
    *asking.FAULTS,
    *skew.FAULTS,
    *elsewhere.FAULTS,
)
