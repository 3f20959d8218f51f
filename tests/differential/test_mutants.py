from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import mutants
from .harness import judge_model, judge_sql, model_refusals, refusals
from .model_mutants import MODEL_MUTANTS
from .mutation import Edit, Mutant, definitions_in_chain
from .sql_mutants import SQL_MUTANTS

if TYPE_CHECKING:
    from fairlease.local.postgres import LocalPostgres

TURNS = "orgs take turns in byte order after the cursor"


def in_sql(where: str, old: str, new: str, red: str = TURNS) -> Mutant:
    return Mutant("a test's own", red, (Edit(where, old, new),))


@pytest.mark.parametrize(
    "useless",
    [
        in_sql("fairlease.move_cursor", "if found then", "if found then"),
        in_sql("fairlease.move_cursor", "if this is not there", "if false then"),
        in_sql("fairlease.no_such_function", "if found then", "if false then"),
    ],
)
def test_a_mutation_that_changes_nothing_is_refused_before_any_scenario(
    postgres: LocalPostgres,
    template: str,
    useless: Mutant,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mutants, "red_scenarios", lambda *_: pytest.fail("a scenario was run"))
    assert mutants.run(postgres, [useless], [], template) == mutants.REFUSED
    assert "a test's own" in capsys.readouterr().out


def test_every_mutation_can_be_planted(postgres: LocalPostgres, template: str) -> None:
    assert refusals(postgres, SQL_MUTANTS, template) == []
    assert model_refusals(MODEL_MUTANTS) == []


def test_a_fault_in_the_sql_turns_its_scenario_red(postgres: LocalPostgres, template: str) -> None:
    planted = in_sql("fairlease.move_cursor", "if found then", "if false then")
    assert judge_sql(postgres, planted, template).red == {TURNS}


@pytest.mark.slow
def test_a_change_that_is_no_fault_survives(postgres: LocalPostgres, template: str) -> None:
    harmless = in_sql("fairlease.move_cursor", "if found then", "if found and true then")
    assert judge_sql(postgres, harmless, template).red == frozenset()


def test_a_fault_in_the_model_turns_its_scenario_red(
    postgres: LocalPostgres, template: str
) -> None:
    planted = in_sql("model", "queue.cursor = org", "pass")
    assert judge_model(postgres, planted, template).killed


def test_every_mutant_names_its_own_fault() -> None:
    for planted in (SQL_MUTANTS, MODEL_MUTANTS):
        assert len({mutant.name for mutant in planted}) == len(planted)
    assert len(SQL_MUTANTS) >= 25


def test_the_chain_tells_how_often_a_function_is_defined() -> None:
    assert definitions_in_chain("fairlease.move_cursor") == 1
    assert definitions_in_chain("fairlease.no_such_function") == 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_mutant_is_killed(postgres: LocalPostgres, template: str) -> None:
    assert mutants.run(postgres, SQL_MUTANTS, MODEL_MUTANTS, template) == mutants.KILLED
