from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import hatchling
import psycopg
import pytest

ROOT = Path(__file__).parents[2]

LOOK = """
import json, pathlib, fairlease
from fairlease import resources
print(json.dumps({
    "package": fairlease.__file__,
    "migrations": sorted(file.name for file in resources.migrations_folder().glob("*.sql")),
    "functions": sorted(file.parent.name for file in
                        resources.functions_folder().glob("*/function.toml")),
    "shims": {file.name: file.read_text() for file in resources.shims_folder().iterdir()},
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment with the wheel; its dependencies are this one's."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)],
        check=True,
    )
    (site,) = (folder / "venv" / "lib").glob("python3*/site-packages")
    # Not through PYTHONPATH or a .pth that runs: the editable install would come along.
    for package in Path(hatchling.__file__).parents[1].iterdir():
        if not package.name.startswith(("fairlease", "_fairlease", "__editable__", "pip")):
            target = site / package.name
            if not target.exists() and package.suffix != ".pth":
                target.symlink_to(package)
    return python


@pytest.mark.slow
def test_installed_wheel_carries_migrations_functions_and_shims(
    installed: Path, tmp_path: Path
) -> None:
    answer = subprocess.run(
        [installed, "-c", LOOK],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    seen = json.loads(answer.stdout)
    assert Path(seen["package"]).is_relative_to(installed.parents[1])
    assert seen["migrations"] == sorted(f.name for f in ROOT.joinpath("migrations").glob("*.sql"))
    assert seen["functions"] == sorted(
        file.parent.name for file in ROOT.joinpath("functions").glob("*/function.toml")
    )
    shared = ROOT / "supabase" / "functions" / "_shared"
    assert seen["shims"] == {file.name: file.read_text() for file in shared.iterdir()}


@pytest.mark.slow
def test_installed_command_migrates_a_database(
    installed: Path, tmp_path: Path, pgmq_database: str
) -> None:
    answer = subprocess.run(
        [installed.with_name("fairlease"), "migrate", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": "", "FAIRLEASE_DATABASE_URL": pgmq_database},
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(json.loads(answer.stdout)["applied"]) > 0
    with psycopg.connect(pgmq_database) as session:
        found = session.execute("select to_regclass('fairlease.queues') is not null").fetchone()
    assert found == (True,)
