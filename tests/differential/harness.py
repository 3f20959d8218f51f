"""Databases to plant faults in, and the scenarios that go red in them."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from fairlease.admin.migrate import migrate
from fairlease.local.bootstrap import bootstrap
from fairlease.local.postgres import SUPERUSER

from .database import Database
from .model import Model
from .mutation import Mutant, NotPlanted, mutated_model, plant
from .replay import QUEUES, Disagreement, Replay
from .scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlease.local.postgres import LocalPostgres

ORIGINAL = "mutants_original"
_copies = itertools.count()


@dataclass(frozen=True)
class Verdict:
    """Which scenarios went red; killed if the one that the mutant names is among them."""

    mutant: Mutant
    red: frozenset[str]

    @property
    def killed(self) -> bool:
        return self.mutant.red in self.red


def prepare(server: LocalPostgres) -> None:
    """Make the database with every migration that is cloned for each mutant."""
    bootstrap(server)
    name = sql.Identifier(ORIGINAL)
    with psycopg.connect(server.url(user=SUPERUSER), autocommit=True) as admin:
        admin.execute(sql.SQL("create database {} owner postgres").format(name))
        bootstrap(server, ORIGINAL)
        migrate(server.url(ORIGINAL))
        admin.execute(sql.SQL("alter database {} with allow_connections false").format(name))


@contextlib.contextmanager
def clone(server: LocalPostgres, template: str = ORIGINAL) -> Iterator[psycopg.Connection]:
    """A copy of a migrated database, thrown away."""
    name = f"mutated_{next(_copies)}"
    create = sql.SQL("create database {} template {} owner postgres strategy file_copy")
    with psycopg.connect(server.url(user=SUPERUSER), autocommit=True) as admin:
        admin.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
        with psycopg.connect(server.url(name), autocommit=True) as connection:
            yield connection
        admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def red_scenarios(
    connection: psycopg.Connection, model: type[Model] = Model, first: str = ""
) -> frozenset[str]:
    """Scenario `first`, and if that is green all of them, whatever becomes of any one."""
    database = Database(connection, QUEUES)
    database.install()
    if first and is_red(first, model, database):
        return frozenset({first})
    return frozenset(name for name in SCENARIOS if is_red(name, model, database))


def is_red(name: str, model: type[Model], database: Database) -> bool:
    try:
        Replay(model(QUEUES), database).run(SCENARIOS[name])
    except (Disagreement, psycopg.Error, AssertionError, LookupError):
        return True
    return False


def refusals(
    server: LocalPostgres, mutants: Sequence[Mutant], template: str = ORIGINAL
) -> list[str]:
    """Why mutations cannot be planted, each tried in a transaction that is rolled back."""
    found = []
    with clone(server, template) as connection:
        for mutant in mutants:
            try:
                with connection.transaction(force_rollback=True):
                    plant(connection, mutant)
            except (NotPlanted, psycopg.Error) as error:
                found.append(f"{mutant.name}: {error}")
    return found


def model_refusals(mutants: Sequence[Mutant]) -> list[str]:
    found = []
    for mutant in mutants:
        try:
            mutated_model(mutant)
        except (NotPlanted, SyntaxError) as error:
            found.append(f"{mutant.name}: {error}")
    return found


def judge_sql(server: LocalPostgres, mutant: Mutant, template: str = ORIGINAL) -> Verdict:
    with clone(server, template) as connection:
        plant(connection, mutant)
        return Verdict(mutant, red_scenarios(connection, first=mutant.red))


def judge_model(server: LocalPostgres, mutant: Mutant, template: str = ORIGINAL) -> Verdict:
    model = mutated_model(mutant)
    with clone(server, template) as connection:
        return Verdict(mutant, red_scenarios(connection, model, first=mutant.red))
