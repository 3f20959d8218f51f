"""`python -m tests.promela`: search every variant and print the table."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from .checker import Search, Variant, missing_tools, search
from .variants import FAULTS, HOLDS


def main() -> int:
    missing = missing_tools()
    if missing:
        print(f"not found: {', '.join(missing)} (Debian: apt-get install spin gcc)")
        return 2
    print(f"{'variant':42} {'states':>11} {'s':>6}  {'expected':26} found")
    disagreements = 0
    for variant in (*HOLDS, *FAULTS):
        with tempfile.TemporaryDirectory() as folder:
            found = search(variant, Path(folder))
        agrees = found.agrees_with(variant)
        disagreements += not agrees
        print(_line(variant, found, agrees=agrees), flush=True)
    print(f"{len(HOLDS)} hold, {len(FAULTS)} planted faults, {disagreements} disagreements")
    return 1 if disagreements else 0


def _line(variant: Variant, found: Search, *, agrees: bool) -> str:
    what = "error" if found.violation else "none"
    if not found.exhaustive and not found.violation:
        what = "NOT EXHAUSTIVE"
    return (
        f"{variant.name:42} {found.states:>11,} {found.seconds:>6.1f}  "
        f"{variant.expected or 'none':26} {what}{'' if agrees else '  <-- DISAGREES'}"
    )


if __name__ == "__main__":
    sys.exit(main())
