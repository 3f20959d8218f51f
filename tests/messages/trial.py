"""`python -m messages.trial URL FIRST_SEED COUNT [FAULT IN PYTHON]`: plays until one is red.

Exit codes: 0 none was, 1 one was. A process of its own, whose imports find the fault planted.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter

from drain.rules import Planter

from .faults import IN_PYTHON


def main(url: str, first: str, count: str, name: str = "") -> int:
    for fault in IN_PYTHON:
        if fault.what == name:
            sys.meta_path.insert(0, Planter(fault))
    # Imported here: what is imported before the fault is planted would not have it.
    from fairlease.transports.postgres import PostgresRpc  # noqa: PLC0415

    from .database import opened  # noqa: PLC0415
    from .dice import plan_of  # noqa: PLC0415
    from .ends import play  # noqa: PLC0415

    logging.disable()
    seeds = range(int(first), int(first) + int(count))
    with opened(url, lambda: PostgresRpc(url, connections=1)) as database:
        for seed in seeds:
            if broken := play(plan_of(seed), database, Counter()):
                print(f"seed {seed}: {broken[0]}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
