from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import github_worker
from fairlease.host.functions import discover

FOLDER = Path(github_worker.__file__).parent
WITHOUT_GITHUBKIT = """
import sys
sys.modules["githubkit"] = None
import github_worker.handlers
"""


def test_the_host_finds_it_with_its_queues_and_all_six_methods() -> None:
    function = discover([FOLDER.parent])["github_worker"]

    assert function.queues == ("async_calls", "async_calls_low_priority")
    assert function.manifest.pokes == 2
    assert function.settings({}).knobs.drain_concurrency == 4
    assert set(function.load_worker().handlers) == {
        "create_repo",
        "sync_repo_permissions",
        "sync_student_team",
        "sync_staff_team",
        "archive_repo_and_lock",
        "fix_assignment_repo_permissions",
    }


def test_without_its_extra_the_remedy_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_GITHUBKIT],
        env={"PYTHONPATH": str(FOLDER.parent)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "ConfigurationError: github_worker needs the extra 'github'" in done.stderr


@pytest.mark.parametrize("module", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_its_modules_use_only_public_names_of_fairlease(module: Path) -> None:
    text = module.read_text(encoding="utf-8")

    assert "from fairlease." not in text
    assert "import fairlease" not in text
    assert "starlette" not in text
