"""`make chain [ARGS="--seconds 100"]`: a line for each link; exit code 1 for a broken chain.

2: something that it needs is not installed. `--wrong-secret` breaks it on purpose.
"""

from __future__ import annotations

import argparse
import sys
import time

from chain.chain import Chain, ChainBroken
from fairlease.errors import FairleaseError
from shims import deno
from stack import pg_cron

_HEARD_LINES = 15


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=100.0, help="patience with each link")
    parser.add_argument("--wrong-secret", action="store_true", help="in Vault")
    chosen = parser.parse_args()
    missing = [] if pg_cron.is_installed() else [pg_cron.MISSING]
    missing += [] if deno.find_deno() else [deno.MISSING]
    if missing:
        print(*missing, sep="\n", file=sys.stderr)
        return 2
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:6.1f} s  {line}", flush=True)

    chain = Chain(say, chosen.seconds, "wrong" if chosen.wrong_secret else None)
    try:
        chain.run()
    except (ChainBroken, FairleaseError) as error:
        print(*chain.heard[-_HEARD_LINES:], sep="\n", file=sys.stderr)
        print(f"BROKEN: {error}", file=sys.stderr)
        return 1
    say("done: cron -> Deno shim -> host -> drain")
    return 0


if __name__ == "__main__":
    sys.exit(main())
