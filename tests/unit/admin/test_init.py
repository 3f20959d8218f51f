"""`fairlease init`: what it puts into a Supabase project, and that nothing there is lost."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest

from fairlease import resources
from unit.cron.folders import write

if TYPE_CHECKING:
    from pathlib import Path

    from cli import Cli

MINE = '[api]\nschemas = ["public", "pgmq_public"]\n# keep me\n[auth]\nenabled = true'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A Supabase project with its config, beside two functions."""
    for name in ("invites", "nightly"):
        write(tmp_path, name)
    folder = tmp_path / "supabase"
    folder.mkdir()
    (folder / "config.toml").write_text(MINE)
    return folder


def init(cli: Cli, project: Path, *options: object) -> dict[str, list[str]]:
    answer = cli("init", project, "--functions", project.parent, "--json", *options)
    assert answer.returncode == 0, answer.stderr
    found: dict[str, list[str]] = json.loads(answer.stdout)
    return found


def texts(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_every_migration_and_a_shim_for_each_function_are_written_once(
    cli: Cli, project: Path
) -> None:
    first = init(cli, project)
    migrations = {f"migrations/{f.name}" for f in resources.migrations_folder().glob("*.sql")}
    shims = {f"functions/{n}/index.ts" for n in ("invites", "nightly")}
    assert set(first["written"]) == {
        *migrations,
        *shims,
        "functions/_shared/poke.ts",
        "config.toml",
    }
    assert set(texts(project)) == set(first["written"])
    before = texts(project)
    second = init(cli, project)
    assert (second["written"], set(second["present"])) == ([], set(first["written"]))
    assert texts(project) == before


def test_a_new_function_gets_its_shim_and_the_others_stay(cli: Cli, project: Path) -> None:
    init(cli, project)
    write(project.parent, "later")
    assert init(cli, project)["written"] == ["functions/later/index.ts", "config.toml"]
    config = tomllib.loads((project / "config.toml").read_text())
    assert set(config["functions"]) == {"invites", "later", "nightly"}


def test_the_config_keeps_what_it_says_and_asks_no_jwt_of_the_functions(
    cli: Cli, project: Path
) -> None:
    assert init(cli, project)["remarks"] == []
    text = (project / "config.toml").read_text()
    assert text.startswith(f"{MINE}\n")
    config = tomllib.loads(text)
    assert config["functions"] == {n: {"verify_jwt": False} for n in ("invites", "nightly")}
    assert config["auth"] == {"enabled": True}


@pytest.mark.parametrize("own", ["verify_jwt = true", 'import_map = "x.json"'])
def test_a_function_of_the_config_stays_and_is_remarked_on_where_it_asks_for_a_jwt(
    cli: Cli, project: Path, own: str
) -> None:
    mine = f"{MINE}\n[functions.invites]\n{own}\n"
    (project / "config.toml").write_text(mine)
    (remark,) = init(cli, project)["remarks"]
    assert "[functions.invites] verify_jwt = false" in remark
    text = (project / "config.toml").read_text()
    assert text.startswith(mine)
    assert tomllib.loads(text)["functions"]["nightly"] == {"verify_jwt": False}


def test_a_config_that_does_not_expose_the_queues_is_remarked_on(cli: Cli, project: Path) -> None:
    (project / "config.toml").write_text('[api]\nschemas = ["public"]\n')
    (remark,) = init(cli, project)["remarks"]
    assert remark.endswith('add "pgmq_public" to schemas of [api]')


def test_without_a_config_the_remark_is_to_make_one(cli: Cli, project: Path) -> None:
    (project / "config.toml").unlink()
    answer = cli("init", project, "--functions", project.parent)
    assert "to do: " in answer.stdout
    assert "run `supabase init`" in answer.stdout
    assert not (project / "config.toml").exists()


@pytest.mark.parametrize("broken", ["[api", 'functions = "none"\n', "[functions]\ninvites = 1\n"])
def test_a_config_that_cannot_be_added_to_is_named_and_nothing_is_written(
    cli: Cli, project: Path, broken: str
) -> None:
    (project / "config.toml").write_text(broken)
    refused = cli("init", project, "--functions", project.parent)
    assert refused.returncode == 2
    assert str(project / "config.toml") in refused.stderr
    assert texts(project) == {"config.toml": broken.encode()}


def test_functions_in_one_line_of_the_config_are_not_spoiled(cli: Cli, project: Path) -> None:
    inline = "functions = { invites = { verify_jwt = false } }\n"
    (project / "config.toml").write_text(inline)
    assert cli("init", project, "--functions", project.parent).returncode == 2
    assert texts(project) == {"config.toml": inline.encode()}


@pytest.mark.parametrize("place", ["functions/invites/index.ts", "functions/_shared/poke.ts"])
def test_a_file_in_the_place_of_a_shim_is_never_overwritten(
    cli: Cli, project: Path, place: str
) -> None:
    (project / place).parent.mkdir(parents=True)
    (project / place).write_bytes(b"mine \xff")
    refused = cli("init", project, "--functions", project.parent)
    assert refused.returncode == 2
    assert "move it away" in refused.stderr
    assert texts(project) == {"config.toml": MINE.encode(), place: b"mine \xff"}
    assert init(cli, project, "--no-shims")["written"]


def test_a_migration_with_another_content_is_never_overwritten(cli: Cli, project: Path) -> None:
    name = next(iter(sorted(f.name for f in resources.migrations_folder().glob("*.sql"))))
    (project / "migrations").mkdir()
    (project / "migrations" / name).write_text("select 'mine';")
    refused = cli("init", project, "--no-shims")
    assert refused.returncode == 2
    assert "another content" in refused.stderr
    assert texts(project / "migrations") == {name: b"select 'mine';"}


def test_ends_of_lines_of_another_system_are_no_other_content(cli: Cli, project: Path) -> None:
    init(cli, project)
    for file in [*project.rglob("*.sql"), *project.rglob("*.ts")]:
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert init(cli, project)["written"] == []


def test_without_shims_only_migrations_are_written_and_no_function_is_looked_for(
    cli: Cli, project: Path
) -> None:
    answer = cli("init", project, "--no-shims", "--functions", project / "nowhere", "--json")
    written = json.loads(answer.stdout)["written"]
    assert written
    assert all(name.startswith("migrations/") for name in written)
    assert (project / "config.toml").read_text() == MINE


def test_a_folder_that_cannot_be_written_is_one_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = cli("init", tmp_path / "file", "--no-shims")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "cannot write to" in refused.stderr
