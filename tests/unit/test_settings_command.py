from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from cli import Cli

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_command_writes_the_page_as_it_is_kept(cli: Cli) -> None:
    assert cli("settings", "--markdown").stdout == PAGE.read_text()


def test_the_data_has_every_knob_with_its_value_and_the_issues(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEASE_MAX_CRASHES", "3")
    monkeypatch.setenv("FAIRLEASE_POLL_BUSY_MS", "fast")
    data = json.loads(cli("settings", "--json").stdout)
    in_effect = {knob["env"]: knob["in_effect"] for knob in data["knobs"]}
    assert in_effect["FAIRLEASE_MAX_CRASHES"] == 3
    assert in_effect["FAIRLEASE_POLL_BUSY_MS"] == 100
    assert [issue["env"] for issue in data["issues"]] == ["FAIRLEASE_POLL_BUSY_MS"]


def test_the_text_shows_the_issues_below_the_table(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEASE_POLL_BUSY_MS", "fast")
    text = cli("settings").stdout
    assert "FAIRLEASE_DRAIN_CONCURRENCY" in text
    assert "issue: FAIRLEASE_POLL_BUSY_MS='fast' is not a number; using 100" in text
