"""The SQL files: found, ordered, fingerprinted."""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.errors import ConfigurationError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FILE_NAME = re.compile(r"(?P<version>\d{14})_(?P<name>[a-z0-9_]+)\.sql")


@dataclass(frozen=True)
class Migration:
    """`version` is a timestamp of 14 digits."""

    version: str
    name: str
    statements: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.statements.encode()).hexdigest()

    @property
    def label(self) -> str:
        return f"{self.version}_{self.name}"


def read_folder(folder: Path) -> list[Migration]:
    """In the order of their versions. Raises ConfigurationError."""
    found = [_read(file) for file in sorted(folder.glob("*.sql"))]
    if not found:
        raise ConfigurationError(f"no migration files in {folder}: name the folder that has them")
    for earlier, later in itertools.pairwise(found):
        if earlier.version == later.version:
            raise ConfigurationError(
                f"two migrations have version {later.version}: {earlier.name} and {later.name}: "
                "rename one"
            )
    return found


def up_to(migrations: Sequence[Migration], version: str | None) -> list[Migration]:
    """Those up to and including `version`, all for None. Raises InvalidInput for an unknown one."""
    if version is None:
        return list(migrations)
    if version not in {migration.version for migration in migrations}:
        newest = migrations[-1].version
        raise InvalidInput(f"no migration has version {version!r}: the newest one is {newest}")
    return [migration for migration in migrations if migration.version <= version]


def _read(file: Path) -> Migration:
    parts = _FILE_NAME.fullmatch(file.name)
    if parts is None:
        raise ConfigurationError(
            f"migration file {file.name}: the name must be <YYYYMMDDHHMMSS>_<lower_case_name>.sql"
        )
    # Text mode: the same for either kind of line ending.
    return Migration(parts["version"], parts["name"], file.read_text(encoding="utf-8"))
