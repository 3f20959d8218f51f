from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from fairlease.admin import migrate as migrations
from fairlease.admin.migrate import MigrationFailed, migrate
from fairlease.errors import ConfigurationError, InvalidInput, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ALL = ["20260101000000_first", "20260102000000_second", "20260103000000_third"]


def rows(url: str, query: str) -> list[Any]:
    with psycopg.connect(url) as session:
        return [row[0] for row in session.execute(query.encode()).fetchall()]


def versions(url: str) -> list[str]:
    return rows(url, "select version from fairlease.schema_migrations order by version")


def test_applies_every_file_in_order_and_only_once(empty: str, folder: Path) -> None:
    first = migrate(empty, folder=folder)
    assert (first.applied, first.pending, first.unknown) == (ALL, [], [])
    assert migrate(empty, folder=folder).applied == []
    assert rows(empty, "select id from public.one order by id") == [1, 3]
    recorded = rows(
        empty, "select name || ' ' || length(checksum) from fairlease.schema_migrations order by 1"
    )
    assert recorded == ["first 64", "second 64", "third 64"]


def test_failure_half_way_keeps_what_came_before_and_can_be_run_again(
    empty: str, write: Callable[[dict[str, str]], Path], folder: Path
) -> None:
    good = folder.joinpath("20260102000000_second.sql").read_text()
    write({"20260102000000_second.sql": "create table public.two (id int); select 1 / 0;"})
    with pytest.raises(MigrationFailed, match=r"20260102000000_second failed .*division by zero"):
        migrate(empty, folder=folder)
    assert versions(empty) == ["20260101000000"]
    assert rows(empty, "select to_regclass('public.two')") == [None]
    write({"20260102000000_second.sql": good})
    assert migrate(empty, folder=folder).applied == ALL[1:]


def test_check_and_rehearsal_change_nothing(empty: str, folder: Path) -> None:
    assert migrations.check(empty, folder=folder).pending == ALL
    rehearsed = migrations.rehearse(empty, folder=folder)
    assert (rehearsed.applied, rehearsed.pending) == (ALL, ALL)
    assert rows(empty, "select to_regclass('public.one')") == [None]
    assert rows(empty, "select to_regnamespace('fairlease')") == [None]


def test_rehearsal_finds_the_failure(
    empty: str, write: Callable[[dict[str, str]], Path], folder: Path
) -> None:
    write({"20260104000000_bad.sql": "select nonsense;"})
    with pytest.raises(MigrationFailed, match="20260104000000_bad"):
        migrations.rehearse(empty, folder=folder)
    assert rows(empty, "select to_regclass('public.one')") == [None]


def test_to_a_version_stops_there(empty: str, folder: Path) -> None:
    report = migrate(empty, folder=folder, to="20260102000000")
    assert (report.applied, report.pending) == (ALL[:2], [])
    assert migrations.check(empty, folder=folder).pending == ALL[2:]


def test_to_an_unknown_version_is_refused_before_anything_happens(empty: str, folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'20260102': the newest one is 20260103000000"):
        migrate(empty, folder=folder, to="20260102")
    assert rows(empty, "select to_regnamespace('fairlease')") == [None]


def test_changed_file_is_refused_before_anything_happens(
    empty: str, write: Callable[[dict[str, str]], Path], folder: Path
) -> None:
    migrate(empty, folder=folder)
    known = versions(empty)
    write({"20260101120000_late.sql": "select 1;", "20260103000000_third.sql": "select 'other';"})
    for run in (migrate, migrations.check):
        with pytest.raises(ConfigurationError, match="20260103000000_third was changed"):
            run(empty, folder=folder)
    assert versions(empty) == known


def test_line_endings_are_no_change(
    empty: str, write: Callable[[dict[str, str]], Path], folder: Path
) -> None:
    text = "select 1;\nselect 2;\n"
    write({"20260104000000_lines.sql": text})
    migrate(empty, folder=folder)
    folder.joinpath("20260104000000_lines.sql").write_bytes(text.replace("\n", "\r\n").encode())
    assert migrations.check(empty, folder=folder).pending == []


def test_file_that_arrives_late_is_applied(
    empty: str, write: Callable[[dict[str, str]], Path], folder: Path
) -> None:
    migrate(empty, folder=folder)
    write({"20260101120000_between.sql": "select 1;"})
    assert migrate(empty, folder=folder).applied == ["20260101120000_between"]


def test_older_files_meet_a_newer_database(empty: str, folder: Path) -> None:
    migrate(empty, folder=folder)
    folder.joinpath("20260103000000_third.sql").unlink()
    report = migrate(empty, folder=folder)
    assert (report.applied, report.pending, report.unknown) == ([], [], ["20260103000000"])


def test_api_is_told_to_reload(empty: str, folder: Path) -> None:
    with psycopg.connect(empty, autocommit=True) as listener:
        listener.execute("listen pgrst")
        migrate(empty, folder=folder)
        notes = [note.payload for note in listener.notifies(timeout=5, stop_after=3)]
    assert notes == ["reload schema"] * 3


def test_busy_table_is_not_waited_for_without_end(
    empty: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "_TABLE_LOCK_TIMEOUT", "50ms")
    migrate(empty, folder=folder, to="20260101000000")
    with psycopg.connect(empty) as busy:
        busy.execute("lock table public.one in share mode")
        with pytest.raises(MigrationFailed, match=r"20260102000000_second .* was busy .* again"):
            migrate(empty, folder=folder)
    assert migrate(empty, folder=folder).applied == ALL[1:]


@pytest.mark.parametrize("name", ["2026_short.sql", "20260101000000_Upper.sql", "notes.sql"])
def test_file_name_that_the_supabase_cli_would_not_take_is_refused(
    write: Callable[[dict[str, str]], Path], name: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}: the name must be"):
        migrate("postgresql://unused", folder=write({name: "select 1"}))


def test_same_version_twice_is_refused(write: Callable[[dict[str, str]], Path]) -> None:
    files = {"20260101000000_a.sql": "select 1", "20260101000000_b.sql": "select 1"}
    with pytest.raises(ConfigurationError, match="two migrations have version 20260101000000"):
        migrate("postgresql://unused", folder=write(files))


def test_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no migration files in"):
        migrate("postgresql://unused", folder=tmp_path)


def test_unreachable_database_is_one_line_without_the_password(folder: Path) -> None:
    with pytest.raises(TransientError, match="cannot be reached") as caught:
        migrate("postgresql://me:s3cret@127.0.0.1:1/x", folder=folder)
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_malformed_url_is_named_without_repeating_it(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="database URL is malformed") as caught:
        migrate("s3cret", folder=folder)
    assert "s3cret" not in str(caught.value)


def test_wrong_password_is_a_configuration_error(empty: str, folder: Path) -> None:
    url = empty.replace("@", "x@")
    with pytest.raises(ConfigurationError, match="refused the login"):
        migrate(url, folder=folder)
