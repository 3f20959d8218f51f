"""Where SQL files, bundled functions and shims are: in the wheel, or in the checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent
# Made by the wheel's build; a checkout has no such folder.
_BUNDLED = _PACKAGE / "bundled"


def migrations_folder() -> Path:
    """The folder with `<YYYYMMDDHHMMSS>_<name>.sql`."""
    bundled = _BUNDLED / "migrations"
    return bundled if bundled.is_dir() else _PACKAGE.parents[1] / "migrations"


def functions_folder() -> Path:
    """The folder with one folder per bundled function."""
    bundled = _BUNDLED / "functions"
    return bundled if bundled.is_dir() else _PACKAGE.parent


def shims_folder() -> Path:
    """The folder with what the Deno shims of functions share."""
    bundled = _BUNDLED / "shims"
    return bundled if bundled.is_dir() else _PACKAGE.parents[1] / "supabase/functions/_shared"
