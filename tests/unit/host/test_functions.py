from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairlease.errors import ConfigurationError
from fairlease.host.functions import discover, folders_from
from fairlease.resources import functions_folder
from unit.host.folders import DRAIN, HANDLERS, write_function

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def forget_modules() -> Iterator[None]:
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_every_folder_with_a_manifest_is_found_and_others_are_left_alone(tmp_path: Path) -> None:
    write_function(tmp_path, "one_task")
    write_function(tmp_path, "one_drain", DRAIN, handlers=HANDLERS)
    (tmp_path / "no_function").mkdir()
    (tmp_path / "README.md").write_text("")
    assert sorted(discover([tmp_path])) == ["one_drain", "one_task"]


def test_the_code_of_a_function_is_loaded_by_its_kind(tmp_path: Path) -> None:
    write_function(tmp_path, "one_task")
    write_function(tmp_path, "one_drain", DRAIN, handlers=HANDLERS)
    found = discover([tmp_path])
    assert list(found["one_drain"].load_worker().handlers) == ["m"]
    assert callable(found["one_task"].load_task())


def test_modules_of_a_folder_import_one_another_by_either_spelling(tmp_path: Path) -> None:
    code = "from .payloads import A\nfrom one_task.payloads import A as B\nassert A is B\n"
    folder = write_function(tmp_path, "one_task", task=code + "async def run(ctx): return A\n")
    (folder / "payloads.py").write_text("A = 1\n")
    assert callable(discover([tmp_path])["one_task"].load_task())


def test_a_folder_elsewhere_of_the_same_name_is_loaded_afresh(tmp_path: Path) -> None:
    for place, value in (("x", 1), ("y", 2)):
        run = f"VALUE = {value}\nasync def run(ctx): return VALUE\n"
        write_function(tmp_path / place, "one_task", task=run)
        task = discover([tmp_path / place])["one_task"].load_task()
        assert task.__globals__["VALUE"] == value


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (None, "is missing; a task needs it"),
        ("x = 1", r"write async def run\(ctx\)"),
        ("def run(ctx): ...", r"write async def run\(ctx\)"),
        ("async def run(): ...", r"write async def run\(ctx\)"),
        ("async def run(a, b): ...", r"write async def run\(ctx\)"),
        ("import no_such_module", "cannot be loaded: ModuleNotFoundError"),
        ("raise SystemExit('bye\\nbye')", "cannot be loaded: SystemExit: bye bye"),
        ("def", "cannot be loaded: SyntaxError"),
    ],
)
def test_a_task_that_cannot_run_is_one_line_that_names_its_file(
    tmp_path: Path, task: str | None, said: str
) -> None:
    write_function(tmp_path, "one_task", task=task)
    with pytest.raises(ConfigurationError, match=said) as caught:
        discover([tmp_path])["one_task"].check()
    assert "task.py" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("handlers", "said"),
    [
        (None, "is missing; a drain needs it"),
        ("x = 1", "has no `worker`"),
        ("worker = 1", "has no `worker`"),
        ("from fairlease import Worker\nworker = Worker()", "registers no handler"),
        (HANDLERS + '\n@worker.handler("m")\nasync def n(args: Args, ctx): ...', "twice"),
    ],
)
def test_a_drain_without_handlers_is_one_line_with_a_remedy(
    tmp_path: Path, handlers: str | None, said: str
) -> None:
    write_function(tmp_path, "one_drain", DRAIN, handlers=handlers)
    with pytest.raises(ConfigurationError, match=said):
        discover([tmp_path])["one_drain"].check()


def test_a_function_named_like_an_installed_package_is_refused(tmp_path: Path) -> None:
    for name in ("json", "typer", "fairlease", "wave"):
        write_function(tmp_path, name)
    for function in discover([tmp_path]).values():
        with pytest.raises(ConfigurationError, match="rename the folder"):
            function.check()


def test_one_name_in_two_folders_is_refused_and_names_both(tmp_path: Path) -> None:
    write_function(tmp_path / "x", "one_task")
    write_function(tmp_path / "y", "one_task")
    with pytest.raises(ConfigurationError, match="x/one_task; rename one"):
        discover([tmp_path / "x", tmp_path / "y"])


def test_a_folder_that_is_missing_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--functions"):
        discover([tmp_path / "none"])
    with pytest.raises(ConfigurationError, match="no function in"):
        discover([tmp_path])


def test_the_option_wins_over_the_variable_and_that_over_what_is_bundled(tmp_path: Path) -> None:
    environ = {"FAIRLEASE_FUNCTIONS_DIR": f"{tmp_path}:bundled"}
    assert folders_from(["here"], environ) == [Path("here")]
    assert folders_from([], environ) == [tmp_path, functions_folder()]
    assert folders_from([], {}) == [functions_folder()]
    assert folders_from([], {"FAIRLEASE_FUNCTIONS_DIR": ""}) == [functions_folder()]


def test_the_knobs_of_a_function_are_under_those_of_the_environment(tmp_path: Path) -> None:
    toml = DRAIN + "[knobs]\ndrain_concurrency = 2\nmax_crashes = 7\n"
    write_function(tmp_path, "one_drain", toml, handlers=HANDLERS)
    function = discover([tmp_path])["one_drain"]
    knobs = function.settings({"FAIRLEASE_DRAIN_CONCURRENCY": "3"}).knobs
    assert (knobs.drain_concurrency, knobs.max_crashes) == (3, 7)
