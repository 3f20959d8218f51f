"""`python -m tests.gateway.report`: every recorded answer against ours, counted.

Ends with 1 where an owed case is wrong without being listed as different on purpose.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fairlease.local.gateway import running_gateway
from fairlease.local.postgres import LocalPostgres
from gateway import recorded
from gateway.base_state import SETTINGS, BaseState, recorded_config
from gateway.differences import ON_PURPOSE
from gateway.runner import Runner


def main() -> int:
    cases = [case for case in recorded.load() if case.owed]
    only = sys.argv[1:]
    cases = [case for case in cases if not only or case.name.startswith(tuple(only))]
    wrong: dict[str, str] = {}
    with LocalPostgres(settings=SETTINGS) as server:
        base = BaseState(server)
        base.reset()
        with running_gateway(recorded_config(base)) as url:
            runner = Runner(base, url)
            for case in cases:
                problem = runner.play(case)
                if problem is not None:
                    wrong[case.name] = problem
            runner.close()
        base.close()
    return _print(cases, wrong)


def _print(cases: list[recorded.Recorded], wrong: dict[str, str]) -> int:
    different = [case.name for case in cases if case.name in ON_PURPOSE]
    unexplained = {name: problem for name, problem in wrong.items() if name not in ON_PURPOSE}
    right = len(cases) - len(different) - len(unexplained)
    out = sys.stdout.write
    out(f"owed {len(cases)}  right {right}  different on purpose {len(different)}  ")
    out(f"wrong {len(unexplained)}\n")
    for name in different:
        out(f"different on purpose: {name}: {ON_PURPOSE[name]}\n")
    for name, problem in unexplained.items():
        out(f"wrong: {name}: {problem}\n")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
