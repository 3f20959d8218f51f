"""Puts into a user's own Supabase project what fairlease needs there: migrations and shims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease import resources
from fairlease.admin import migration_files, shims
from fairlease.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_CONFIG = "config.toml"


@dataclass(frozen=True)
class ScaffoldReport:
    """File names below `folder`: written now, and there already as they should be.

    `remarks` are what is left for a person to do, a line each.
    """

    folder: str
    written: list[str]
    present: list[str]
    remarks: list[str]


def scaffold(
    folder: Path, functions: Sequence[str] = (), source: Path | None = None
) -> ScaffoldReport:
    """Write what is missing into `folder`, a project's `supabase`; nothing of its own is lost.

    `functions` get a shim and no longer ask their callers for a JWT; without any, only migrations
    are written. Raises ConfigurationError where another file has the place or the version of one
    of ours, before anything is written, and where the folder cannot be written.
    """
    try:
        texts = _migrations(folder, source)
        remarks: list[str] = []
        if functions:
            texts |= _checked(folder, shims.files(functions))
            config, remarks = _config(folder, functions)
            texts |= config
        missing = {name: text for name, text in texts.items() if not _has(folder / name, text)}
        for name, text in missing.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot write to {folder}: {error.strerror}") from error
    present = [name for name in texts if name not in missing]
    return ScaffoldReport(str(folder), list(missing), present, remarks)


def _migrations(folder: Path, source: Path | None) -> dict[str, str]:
    migrations = migration_files.read_folder(source or resources.migrations_folder())
    taken = {file.name.split("_", 1)[0]: file for file in folder.glob("migrations/*.sql")}
    for migration in migrations:
        other = taken.get(migration.version)
        if other is None:
            continue
        if other.name != f"{migration.label}.sql" or not _has(other, migration.statements):
            raise ConfigurationError(
                f"{other} has the version of {migration.label}.sql and another content: "
                "move it away"
            )
    return {f"migrations/{one.label}.sql": one.statements for one in migrations}


def _checked(folder: Path, texts: dict[str, str]) -> dict[str, str]:
    for name, text in texts.items():
        if (folder / name).exists() and not _has(folder / name, text):
            raise ConfigurationError(
                f"{folder / name} is not what fairlease would write: move it away, or leave the "
                "shims out with --no-shims"
            )
    return texts


def _config(folder: Path, functions: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    file = folder / _CONFIG
    if not file.exists():
        return {}, [f"{file} is missing: run `supabase init`, and then this again"]
    try:
        text, remarks = shims.configured(file.read_text(encoding="utf-8"), functions)
    except ValueError as error:
        raise ConfigurationError(f"{file}: {error}") from error
    return {_CONFIG: text}, [f"{file}: {remark}" for remark in remarks]


def _has(file: Path, text: str) -> bool:
    # A checkout may have turned the ends of lines into those of its system.
    return file.is_file() and file.read_bytes().replace(b"\r\n", b"\n") == text.encode()
