"""`python -m tests.differential.mutants [PART OF A NAME]`: plant every fault, see it caught.

Exit codes: 0 all killed; 1 a survivor; 2 the unharmed allocator fails a scenario; 3 a mutation
that would not change what is installed, found before any scenario is run.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from fairlease.local.postgres import LocalPostgres

from .harness import (
    ORIGINAL,
    Verdict,
    clone,
    judge_model,
    judge_sql,
    model_refusals,
    prepare,
    red_scenarios,
    refusals,
)
from .model_mutants import MODEL_MUTANTS
from .mutation import Mutant, definitions_in_chain
from .scenarios import SCENARIOS
from .sql_mutants import SQL_MUTANTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KILLED, SURVIVED, UNSOUND, REFUSED = range(4)
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}
AT_ONCE = 3


def main(arguments: Sequence[str]) -> int:
    part = arguments[0] if arguments else ""
    in_sql = [mutant for mutant in SQL_MUTANTS if part in mutant.name]
    in_model = [mutant for mutant in MODEL_MUTANTS if part in mutant.name]
    with LocalPostgres(settings=SETTINGS) as server:
        prepare(server)
        return run(server, in_sql, in_model)


def run(
    server: LocalPostgres,
    in_sql: Sequence[Mutant],
    in_model: Sequence[Mutant],
    template: str = ORIGINAL,
) -> int:
    refused = refusals(server, in_sql, template) + model_refusals(in_model)
    if refused:
        print("refused, nothing was run:", *refused, sep="\n  ")
        return REFUSED
    with clone(server, template) as connection:
        red = red_scenarios(connection)
    if red:
        print("red without any mutation:", *sorted(red), sep="\n  ")
        return UNSOUND
    survivors = [
        *judge_all(partial(judge_sql, server, template=template), in_sql, functions_of),
        *judge_all(
            partial(judge_model, server, template=template), in_model, lambda _: "the model"
        ),
    ]
    planted = len(in_sql) + len(in_model)
    print(
        f"{planted - len(survivors)} of {planted} killed: {len(in_sql)} in the SQL, "
        f"{len(in_model)} in the model; {len(SCENARIOS)} scenarios, green without a mutation"
    )
    return SURVIVED if survivors else KILLED


def judge_all(
    judge: Callable[[Mutant], Verdict],
    mutants: Sequence[Mutant],
    where: Callable[[Mutant], str],
) -> list[Mutant]:
    """The survivors; prints one line for each mutant."""
    survivors = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for verdict in pool.map(judge, mutants):
            if not verdict.killed:
                survivors.append(verdict.mutant)
            print(line(verdict, where(verdict.mutant)), flush=True)
    return survivors


def line(verdict: Verdict, where: str) -> str:
    state = "killed" if verdict.killed else "SURVIVED"
    others = "" if verdict.killed else f"; red instead: {', '.join(sorted(verdict.red)) or 'none'}"
    return f"{state:8}  {verdict.mutant.name:46} {where:44} red: {verdict.mutant.red}{others}"


def functions_of(mutant: Mutant) -> str:
    """The changed functions; of one that the migrations define again, the last definition."""
    said = []
    for name in dict.fromkeys(edit.where for edit in mutant.edits):
        count = definitions_in_chain(name)
        overridden = f" (last of {count} definitions)" if count > 1 else ""
        said.append(name.removeprefix("fairlease.") + overridden)
    return ", ".join(said)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
