from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Not re-runnable on purpose: applied a second time it raises.
FILES = {
    "20260101000000_first.sql": "create table public.one as select 1 as id;",
    "20260102000000_second.sql": "alter table public.one add column note text default '100%';",
    "20260103000000_third.sql": "insert into public.one values (3);",
}


@pytest.fixture
def empty(pgmq_database: str) -> str:
    """URL of a database with pgmq and nothing of ours."""
    return pgmq_database


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Make a folder of migration files, or add to it."""

    def _write(files: dict[str, str]) -> Path:
        folder = tmp_path / "migrations"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            folder.joinpath(name).write_text(text)
        return folder

    return _write


@pytest.fixture
def folder(write: Callable[[dict[str, str]], Path]) -> Path:
    """Three files."""
    return write(FILES)
