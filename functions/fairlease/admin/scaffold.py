"""Copies the migration files into a user's own Supabase project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease import resources
from fairlease.admin import migration_files
from fairlease.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class ScaffoldReport:
    """File names: copied now, and there already with the same text."""

    folder: str
    copied: list[str]
    present: list[str]


def scaffold(folder: Path, source: Path | None = None) -> ScaffoldReport:
    """Copy what is missing into `folder`; never overwrite.

    Raises ConfigurationError where a file of the same version has another text, before anything is
    copied, and where the folder cannot be written.
    """
    migrations = migration_files.read_folder(source or resources.migrations_folder())
    copied, present = [], []
    try:
        taken = {file.name.split("_", 1)[0]: file for file in folder.glob("*.sql")}
        for migration in migrations:
            file = folder / f"{migration.label}.sql"
            other = taken.get(migration.version)
            if other is None:
                copied.append(file.name)
            elif other.name == file.name and _same(other, migration):
                present.append(file.name)
            else:
                raise ConfigurationError(
                    f"{other} has the version of {file.name} and another content: move it away"
                )
        folder.mkdir(parents=True, exist_ok=True)
        for migration in migrations:
            if f"{migration.label}.sql" in copied:
                target = folder / f"{migration.label}.sql"
                target.write_text(migration.statements, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot write to {folder}: {error.strerror}") from error
    return ScaffoldReport(str(folder), copied, present)


def _same(file: Path, migration: migration_files.Migration) -> bool:
    text = file.read_text(encoding="utf-8")
    return migration_files.Migration(migration.version, migration.name, text) == migration
