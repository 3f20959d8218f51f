from __future__ import annotations

import subprocess

import psycopg

from fairlease import resources
from fairlease.admin import migration_files
from fairlease.admin.migrate import migrate
from fairlease.local import binaries

FILES = sorted(resources.migrations_folder().glob("*.sql"))


def psql(url: str, *arguments: str) -> str:
    answer = subprocess.run(
        [binaries.bundled() / "psql", url, "-qXAt", "-v", "ON_ERROR_STOP=1", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def catalogue(url: str) -> list[tuple[str, ...]]:
    """Every object of ours, with its definition and its grants; the bookkeeping aside."""
    with psycopg.connect(url) as session:
        return session.execute(
            "select 'function', p.oid::regprocedure::text, pg_get_functiondef(p.oid), "
            "  p.proacl::text "
            "from pg_proc p where p.pronamespace in ('fairlease'::regnamespace, "
            "  'pgmq_public'::regnamespace) and p.prokind = 'f' "
            "union all "
            "select 'column', c.table_schema || '.' || c.table_name || '.' || c.column_name, "
            "  c.data_type || coalesce(c.column_default, '') || c.is_nullable, '' "
            "from information_schema.columns c "
            "where c.table_schema = 'fairlease' and c.table_name <> 'schema_migrations' "
            "union all "
            "select 'index', i.indexname, i.indexdef, '' from pg_indexes i "
            "where i.schemaname = 'fairlease' and i.tablename <> 'schema_migrations' "
            "order by 1, 2"
        ).fetchall()


def test_psql_applies_the_files_and_applies_them_again(pgmq_database: str, database: str) -> None:
    every_file = [part for file in FILES for part in ("-f", str(file))]
    psql(pgmq_database, *every_file)
    once = catalogue(pgmq_database)
    psql(pgmq_database, *every_file)
    assert catalogue(pgmq_database) == once
    assert catalogue(database) == once


def test_migrate_after_psql_finds_nothing_in_its_way(pgmq_database: str) -> None:
    psql(pgmq_database, *[part for file in FILES for part in ("-f", str(file))])
    assert len(migrate(pgmq_database).applied) == len(FILES)


def test_each_file_takes_the_lock_and_tells_the_api(database: str) -> None:
    for migration in migration_files.read_folder(resources.migrations_folder()):
        text = migration.statements
        assert "hashtextextended('fairlease.migrations', 0)" in text, migration.label
        assert text.rstrip().endswith("notify pgrst, 'reload schema';"), migration.label
