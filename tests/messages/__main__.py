"""`python -m messages [PART OF A NAME]`: plant every fault, see a random sequence notice it.

Exit codes: 0 all noticed; 1 a survivor; 2 something is red without a fault.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from differential.harness import clone, prepare
from differential.mutants import SETTINGS
from differential.mutation import Mutant, plant
from drain.faults.fault import Fault
from fairlease.local.postgres import LocalPostgres

from .faults import IN_PYTHON, IN_SQL

AT_ONCE = 2
FIRST_SEED, SEEDS = 0, 400


def main(part: str = "") -> int:
    faults = [f for f in (*IN_SQL, *IN_PYTHON) if part in name_of(f)]
    with LocalPostgres(settings=SETTINGS) as server:
        prepare(server)
        if is_red(server, None):
            return 2
        with ThreadPoolExecutor(AT_ONCE) as pool:
            red = list(pool.map(lambda fault: is_red(server, fault), faults))
    print(f"{sum(red)} of {len(faults)} planted faults were noticed")
    return 0 if all(red) else 1


def name_of(fault: Mutant | Fault) -> str:
    return fault.name if isinstance(fault, Mutant) else fault.what


def is_red(server: LocalPostgres, fault: Mutant | Fault | None) -> bool:
    with clone(server) as connection:
        if isinstance(fault, Mutant):
            plant(connection, fault)
        name = name_of(fault) if isinstance(fault, Fault) else ""
        url = server.url(connection.info.dbname)
        trial = [sys.executable, "-m", f"{__package__}.trial", url, str(FIRST_SEED), str(SEEDS)]
        done = subprocess.run([*trial, name], check=False, stdout=subprocess.PIPE, text=True)
    said = "nothing planted" if fault is None else name_of(fault)
    state = {0: "green", 1: "RED  "}.get(done.returncode, "broke")
    print(f"{state} {said:48} {done.stdout.strip()[:200]}", flush=True)
    return done.returncode == 1 if fault is not None else done.returncode != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
