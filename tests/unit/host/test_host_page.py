"""`docs/host.md` says what fails and which test shows it: the names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairlease.host.lifetime import GRACE_VARIABLE
from fairlease.settings.knobs import Knobs

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs" / "host.md"


@pytest.fixture(scope="module")
def page() -> str:
    if not PAGE.is_file():
        pytest.skip("the docs are not here")
    return PAGE.read_text()


def test_every_test_that_the_page_names_is_there(page: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", page))
    code = "\n".join(file.read_text() for file in (REPOSITORY / "tests").rglob("test_*.py"))
    assert len(named) > 15
    assert named - set(re.findall(r"def (test_\w+)\(", code)) == set()


def test_every_knob_that_the_page_names_is_one(page: str) -> None:
    named = set(re.findall(r"`FAIRLEASE_(\w+)`", page))
    knobs = {name.upper() for name in Knobs.model_fields}
    others = {GRACE_VARIABLE.removeprefix("FAIRLEASE_"), "DATABASE_URL"}
    assert named - knobs == others
