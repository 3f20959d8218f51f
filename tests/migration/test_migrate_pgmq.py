from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from fairlease.admin.migrate import check, migrate
from fairlease.errors import ConfigurationError
from fairlease.local.postgres import SUPERUSER

if TYPE_CHECKING:
    from pathlib import Path


def as_superuser(url: str) -> str:
    return url.replace("//postgres:", f"//{SUPERUSER}:")


def pretend_extension(url: str, version: str) -> None:
    """The bundled server has no extension files: put the catalogue's row there."""
    with psycopg.connect(as_superuser(url)) as session:
        session.execute("set allow_system_table_mods = on")
        session.execute(
            "insert into pg_extension select 70000, 'pgmq', 10, oid, false, %s, null, null "
            "from pg_namespace where nspname = 'pgmq'",
            (version,),
        )


def fairlease_is_absent(url: str) -> bool:
    with psycopg.connect(url) as session:
        return session.execute("select to_regnamespace('fairlease')").fetchone() == (None,)


def test_database_without_pgmq_is_refused_with_the_remedy(bare_database: str, folder: Path) -> None:
    for run in (migrate, check):
        with pytest.raises(ConfigurationError, match="has no pgmq: run `create extension pgmq`"):
            run(bare_database, folder=folder)
    assert fairlease_is_absent(bare_database)


@pytest.mark.parametrize("version", ["1.4.3", "1.3.3", "0.33.1", "1.0"])
def test_too_old_extension_is_refused_with_the_remedy(
    empty: str, folder: Path, version: str
) -> None:
    pretend_extension(empty, version)
    with pytest.raises(ConfigurationError, match=f"pgmq {version} is too old.*alter extension"):
        migrate(empty, folder=folder)
    assert fairlease_is_absent(empty)


@pytest.mark.parametrize("version", ["1.4.4", "1.5", "1.13.0", "1.10.1-beta", "2.0.0"])
def test_recent_extension_is_taken(empty: str, folder: Path, version: str) -> None:
    pretend_extension(empty, version)
    assert len(check(empty, folder=folder).pending) == 3


def test_too_old_plain_sql_pgmq_is_refused(empty: str, folder: Path) -> None:
    with psycopg.connect(empty) as session:
        session.execute("drop function pgmq.format_table_name(text, text)")
    with pytest.raises(ConfigurationError, match=r"too old, it lacks format_table_name.*1\.4\.4"):
        migrate(empty, folder=folder)
    assert fairlease_is_absent(empty)
