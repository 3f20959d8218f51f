"""Planting one fault: in an installed SQL function, or in the source of the model."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .model import Model

if TYPE_CHECKING:
    import psycopg

ROOT = Path(__file__).parents[2]
DEFINITIONS = """
select pg_get_functiondef(p.oid)
from pg_proc p
where p.pronamespace in ('fairlease'::regnamespace, 'pgmq_public'::regnamespace)
  and p.prokind = 'f'
order by p.oid::regprocedure::text
"""


class NotPlanted(Exception):
    """The mutation does not change what is installed: it would prove nothing."""


@dataclass(frozen=True)
class Edit:
    """In the function `where`, the text `old`, found once, becomes `new`."""

    where: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """A fault, and the scenario that must go red."""

    name: str
    red: str
    edits: tuple[Edit, ...]


def plant(connection: psycopg.Connection, mutant: Mutant) -> None:
    """Change the last definition of each function. Raises NotPlanted."""
    before = schema_digest(connection)
    for edit in mutant.edits:
        connection.execute(changed(edit, installed(connection, edit.where)))
    if schema_digest(connection) == before:
        raise NotPlanted(f"{mutant.name}: the schema is as it was")


def changed(edit: Edit, text: str) -> str:
    count = text.count(edit.old)
    if count != 1:
        raise NotPlanted(f"{edit.where}: found {count} times, not once: {edit.old!r}")
    if edit.old == edit.new:
        raise NotPlanted(f"{edit.where}: replaced by itself: {edit.old!r}")
    return text.replace(edit.old, edit.new)


def installed(connection: psycopg.Connection, name: str) -> str:
    schema, _, function = name.partition(".")
    rows = connection.execute(
        "select pg_get_functiondef(p.oid) from pg_proc p"
        " where p.pronamespace = to_regnamespace(%s) and p.proname = %s",
        [schema, function],
    ).fetchall()
    if len(rows) != 1:
        raise NotPlanted(f"{name}: {len(rows)} functions of that name are installed")
    return str(rows[0][0])


def schema_digest(connection: psycopg.Connection) -> str:
    rows: list[Any] = connection.execute(DEFINITIONS).fetchall()
    return hashlib.sha256("".join(row[0] for row in rows).encode()).hexdigest()


def definitions_in_chain(name: str) -> int:
    """How often the migrations define the function: above one, the last overrides the others."""
    pattern = re.compile(rf"create (?:or replace )?function {re.escape(name)}\s*\(", re.IGNORECASE)
    files = (ROOT / "migrations").glob("*.sql")
    return sum(len(pattern.findall(path.read_text(encoding="utf-8"))) for path in files)


def mutated_model(mutant: Mutant) -> type[Model]:
    """The model with one of its two halves changed. Raises NotPlanted."""
    modules = {edit.where for edit in mutant.edits}
    if len(modules) != 1:
        raise NotPlanted(f"{mutant.name}: edits {len(modules)} modules, not one")
    module = modules.pop()
    source = Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
    for edit in mutant.edits:
        source = changed(edit, source)
    names: dict[str, Any] = {"__name__": f"{__package__}.{module}", "__package__": __package__}
    exec(compile(source, f"mutant of {module}.py", "exec"), names)  # noqa: S102
    if module == "model":
        return names["Model"]  # type: ignore[no-any-return]
    return type("Mutated", (names["Deliveries"], Model), {"renew": Model.renew})
