"""The image: its recipe linted, and its steps run as far as they go without an engine."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from chart.dockerfile import Build, is_ignored, rules_of, stages, values_of, words

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
BUILD, FINAL = stages((ROOT / "Dockerfile").read_text())
RULES = rules_of((ROOT / ".dockerignore").read_text())
UID = 10001
PATIENCE_SECONDS = 60.0
# A run that cannot reach its database gives up after three claims.
STOP_SECONDS = 200.0


def test_hadolint_finds_nothing() -> None:
    binary = shutil.which("hadolint") or shutil.which("hadolint", path=f"{sys.prefix}/bin")
    if binary is None:
        pytest.skip("hadolint is missing: make chart")
    answer = subprocess.run([binary, ROOT / "Dockerfile"], capture_output=True, check=False)
    assert answer.returncode == 0, answer.stdout.decode()


def test_the_final_stage_runs_no_root_and_installs_nothing() -> None:
    assert values_of(FINAL, "FROM")[0].endswith("-slim")
    assert values_of(FINAL, "USER") == [f"{UID}:{UID}"]
    assert values_of(FINAL, "RUN") == []
    assert [x for x in values_of(FINAL, "COPY") if not x.startswith("--from=build ")] == []


def test_signals_reach_the_host() -> None:
    assert words(values_of(FINAL, "ENTRYPOINT")[0]) == ["fairlease"]
    assert words(values_of(FINAL, "CMD")[0])[0] == "serve"


def test_port_and_environment_are_those_of_the_command_and_of_a_read_only_root() -> None:
    serves = words(values_of(FINAL, "CMD")[0])
    (port,) = values_of(FINAL, "EXPOSE")
    assert serves[serves.index("--port") + 1] == port
    assert f"127.0.0.1:{port}/healthz" in values_of(FINAL, "HEALTHCHECK")[0]
    given = dict(one.split("=", 1) for one in values_of(FINAL, "ENV")[0].split())
    assert given == {
        "PATH": "/opt/fairlease/bin:$PATH",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/tmp",  # noqa: S108 - what a pod may write to
    }


def test_nothing_is_compiled() -> None:
    commands = " ".join(values_of(BUILD, "RUN"))
    assert "--only-binary :all:" in commands
    assert not re.search(r"\b(apt|apt-get|apk|gcc|build-essential)\b", commands)


def test_the_context_has_what_is_copied_and_no_more() -> None:
    for copied in values_of(BUILD, "COPY"):
        for source in copied.split()[:-1]:
            assert (ROOT / source).exists()
            assert not is_ignored(source, RULES)
    for name in (".env", ".git/config", "tests/conftest.py", "supabase/config.toml", "id_rsa"):
        assert is_ignored(name, RULES)
    assert is_ignored("functions/fairlease/__pycache__/app.pyc", RULES)
    assert not is_ignored("functions/github_worker/function.toml", RULES)


def test_all_that_the_wheel_is_made_of_is_copied() -> None:
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = targets["targets"]["wheel"]
    copied = {source for one in values_of(BUILD, "COPY") for source in one.split()[:-1]}
    for needed in [*wheel["packages"], *wheel["force-include"]]:
        assert {needed, *map(str, Path(needed).parents)} & copied, needed


def test_the_image_installs_what_the_tests_run_with() -> None:
    def locked(name: str) -> set[str]:
        text = (ROOT / name).read_text()
        return {line.strip(" \\") for line in text.splitlines() if re.match(r"\w\S*==", line)}

    image, all_of_it = locked("requirements-image.lock"), locked("requirements.lock")
    assert len(image) > 30
    assert image <= all_of_it
    assert not {one for one in image if one.startswith(("pytest", "ruff", "embedded", "numpy"))}


def open_to_others(python: Path) -> bool:
    places = [python.resolve(), *python.resolve().parents]
    return all(place.stat().st_mode & 0o001 for place in places)


def base_python() -> Path:
    """A Python that the image's user may run, where there is one."""
    own = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    found = [Path(f"/usr/bin/python3.{minor}") for minor in range(14, 10, -1)]
    usable = [one for one in [own, *found] if one.exists() and open_to_others(one)]
    return (usable or [own])[0]


@pytest.fixture(scope="module")
def image() -> Iterator[Build]:
    root = Path(tempfile.mkdtemp(prefix="fairlease-image-"))
    root.chmod(0o755)
    build = Build(root, ROOT, base_python(), RULES)
    try:
        build.run(BUILD)
        yield build
    finally:
        shutil.rmtree(root)


def as_its_user(image: Build) -> dict[str, object]:
    """Arguments of subprocess: the final stage's environment and, where possible, its user."""
    environ = {
        "PATH": f"{image.inside('/opt/fairlease/bin')}:/usr/bin:/bin",
        "HOME": "/tmp",  # noqa: S108 - as the image sets it
        "EDGE_FUNCTION_SECRET": "secret",
        "FAIRLEASE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    }
    who: dict[str, object] = {"env": environ, "cwd": "/", "text": True}
    if os.geteuid() == 0 and open_to_others(image.base_python):
        who |= {"user": UID, "group": UID, "extra_groups": []}
    return who


def call(image: Build, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [image.inside("/opt/fairlease/bin/fairlease"), *arguments],
        **as_its_user(image),  # type: ignore[call-overload]
        capture_output=True,
        check=False,
    )


@pytest.mark.slow
def test_the_steps_of_the_build_run(image: Build) -> None:
    assert image.ran == values_of(BUILD, "RUN")
    assert [file.suffix for file in image.inside("/wheels").iterdir()] == [".whl"]


@pytest.mark.slow
def test_the_installed_packages_are_complete_and_have_no_pip(image: Build) -> None:
    python = image.inside("/opt/fairlease/bin/python")
    checked = subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
    assert not image.inside("/opt/fairlease/bin/pip").exists()


@pytest.mark.slow
def test_the_commands_that_the_chart_runs_are_there(image: Build) -> None:
    for arguments in (["--help"], ["serve", "--help"], ["migrate", "--help"], ["poke", "--help"]):
        answer = call(image, *arguments)
        assert answer.returncode == 0, answer.stderr
    answer = call(image, "migrate")
    assert answer.returncode != 0
    assert "the database cannot be reached" in answer.stderr


@pytest.mark.slow
def test_the_image_has_what_migrations_schedules_and_shims_are_made_of(image: Build) -> None:
    scheduled = call(image, "cron", "sql", "--url", "https://workers.example.com", "--json")
    names = [job["function"] for job in json.loads(scheduled.stdout)["jobs"]]
    assert names == sorted(file.parent.name for file in ROOT.glob("functions/*/function.toml"))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        answer = call(image, "init", f"{folder}/supabase", "--json")
        written = set(json.loads(answer.stdout)["written"])
    assert {f"migrations/{file.name}" for file in ROOT.glob("migrations/*.sql")} < written
    assert {f"functions/{name}/index.ts" for name in names} < written


@pytest.mark.slow
def test_the_host_serves_the_bundled_functions_as_its_user(image: Build) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [*words(values_of(FINAL, "CMD")[0]), "--port", str(port)]
    host = subprocess.Popen(
        [image.inside("/opt/fairlease/bin/fairlease"), *command],
        **as_its_user(image),  # type: ignore[call-overload]
        stdout=subprocess.PIPE,
    )
    try:
        assert host.stdout.readline() == f"READY http://127.0.0.1:{port}\n"
        base = f"http://127.0.0.1:{port}"
        wait_for(f"{base}/healthz")
        assert httpx.get(f"{base}/readyz", timeout=PATIENCE_SECONDS).status_code == 503
        name = "functions/v1/github_worker"
        assert httpx.post(f"{base}/{name}", timeout=PATIENCE_SECONDS).status_code == 401
        assert healthy(image, port) == 0
        poked = call(image, "poke", "github_worker", "--url", base)
        assert '"accepted"' in poked.stdout, poked.stderr
    finally:
        host.terminate()
        assert host.wait(STOP_SECONDS) == 0
        host.stdout.close()
    assert healthy(image, port) == 1


def healthy(image: Build, port: int) -> int:
    """The exit code of HEALTHCHECK, asked about another port."""
    command = words(values_of(FINAL, "HEALTHCHECK")[0].partition("CMD ")[2])
    assert command[0] == "python"
    command[-1] = command[-1].replace(":8787/", f":{port}/")
    python = image.inside("/opt/fairlease/bin/python")
    return subprocess.run(
        [python, *command[1:]],
        **as_its_user(image),  # type: ignore[call-overload]
        stderr=subprocess.DEVNULL,
        check=False,
    ).returncode


def wait_for(url: str) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        try:
            if httpx.get(url, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    pytest.fail(f"{url} does not answer")
