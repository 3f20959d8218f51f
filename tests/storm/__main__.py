"""`python -m tests.storm [--seconds 300] [--seed 1]`: a storm, one line and JSON about it."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

from fairlease.admin.migrate import migrate
from fairlease.local.bootstrap import bootstrap
from fairlease.local.postgres import LocalPostgres

from .storm import storm

SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "max_connections": "120",
    "deadlock_timeout": "100ms",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with LocalPostgres(settings=SETTINGS) as server:
        bootstrap(server)
        migrate(server.url())
        tally = asyncio.run(storm(server.url(), chosen.seconds, chosen.seed))
    print(tally.line())
    print(json.dumps(tally.json(), indent=2))
    return 0 if tally.calm and not tally.idle() else 1


if __name__ == "__main__":
    sys.exit(main())
