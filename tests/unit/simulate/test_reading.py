from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from fairlease.cli.main import app
from fairlease.errors import InvalidInput
from fairlease.simulate.reading import (
    read_durations,
    read_kills,
    read_knobs,
    read_loads,
    read_skews,
)
from fairlease.simulate.scenario import Kill, Load, Skew

if TYPE_CHECKING:
    from pathlib import Path

    from cli import Cli


@pytest.mark.parametrize("text", ["[1, 2.5, 30]", "1\n2.5\n30\n", "  1 2.5\t30"])
def test_durations_are_a_json_array_or_one_number_a_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "durations"
    file.write_text(text)

    assert read_durations(file) == (1.0, 2.5, 30.0)


@pytest.mark.parametrize(
    "text", ["", "[]", "[1, -2]", "[NaN]", "[1e400]", "[true]", '["x"]', "[1,", "1 two", "null"]
)
def test_anything_else_is_refused_by_the_name_of_the_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "durations"
    file.write_text(text)

    with pytest.raises(InvalidInput, match=f"--durations {file}"):
        read_durations(file)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_durations(tmp_path / "nowhere")


def test_orgs_are_dealt_durations_in_order_and_again() -> None:
    loads = read_loads(["a=2", "b=3@60"], (1.0, 2.0, 3.0))

    assert loads == (Load("a", (1.0, 2.0)), Load("b", (3.0, 1.0, 2.0), 60.0))
    assert read_loads(["a=b=2"], (1.0,)) == (Load("a=b", (1.0, 1.0)),)
    assert read_loads([], (1.0, 2.0)) == (Load("busy", (1.0, 2.0)),)


@pytest.mark.parametrize("written", ["a", "a=", "=3", "a=0", "a=-1", "a=1.5", "a=2@soon", "a=2@"])
def test_an_org_that_cannot_be_read_is_refused(written: str) -> None:
    with pytest.raises(InvalidInput, match="--org"):
        read_loads([written], (1.0,))


@pytest.mark.parametrize("count", ["100001", "1000000", "9" * 5000])
def test_more_messages_than_a_simulation_plays_are_refused_with_the_most(count: str) -> None:
    with pytest.raises(InvalidInput, match="give 1 to 100000 messages"):
        read_loads([f"a={count}"], (1.0,))


def test_kills_and_skews_name_a_worker() -> None:
    assert read_kills(["0@480", "1@3.5"], 2) == (Kill(0, 480.0), Kill(1, 3.5))
    assert read_skews(["1@-3600"], 2) == (Skew(1, -3600.0),)


@pytest.mark.parametrize("written", ["480", "2@3", "0@-1", "0@", "x@1", "0@1e5"])
def test_a_kill_that_cannot_be_read_is_refused(written: str) -> None:
    with pytest.raises(InvalidInput, match="--kill"):
        read_kills([written], 2)


def test_knobs_are_those_of_a_real_worker_with_their_bounds() -> None:
    settings = read_knobs(["drain_concurrency=6", "org_slot_lease_ttl_seconds=1"])

    assert settings.knobs.drain_concurrency == 6
    assert settings.knobs.org_slot_lease_ttl_seconds == 45
    assert len(settings.issues) == 1
    with pytest.raises(InvalidInput, match="drain_concurrency"):
        read_knobs(["concurrency=6"])


def test_a_scenario_of_the_users_own_is_one_json_object() -> None:
    asked = ["simulate", "--json", "--org", "a=30", "--org", "b=2@100", "--workers", "2"]
    asked += ["--poke-seconds", "30", "--kill", "0@60", "--skew", "1@3600", "--bounded"]

    said = CliRunner().invoke(app, asked)

    assert said.exit_code == 0, said.output
    outcome = json.loads(said.stdout)
    assert outcome["left"] == 0
    assert outcome["orgs"]["a"]["started"] == 30
    assert outcome["orgs"]["b"]["first_index"] <= 30
    assert 0 < outcome["utilisation"] <= 1


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (["--durations", "nowhere.json"], "--durations nowhere.json: cannot be read"),
        (["--org", "a"], "--org 'a': give NAME=COUNT"),
        (["--kill", "9@5"], "--kill '9@5': workers are 0 to 0"),
        (["--skew", "0@"], "--skew '0@': give WORKER@SECONDS"),
        (["--knob", "pace=1"], "--knob 'pace=1': give NAME=VALUE"),
        (["--plot", "out.gif"], "--plot out.gif: give a file that ends in .png"),
        (["--plot", "nowhere/out.png"], "there is no folder nowhere; make it first"),
        (["--workers", "0"], "'--workers'"),
        (["--call-ms", "nan"], "'--call-ms'"),
    ],
)
def test_the_command_refuses_what_it_cannot_read_before_it_plays_anything(
    asked: list[str],
    named: str,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fairlease.cli.simulate.play", None)
    monkeypatch.setattr("fairlease.cli.simulate.burst.comparison", None)

    answer = cli("simulate", *asked)

    assert answer.returncode == 2
    assert named in answer.stderr
    assert answer.stdout == ""


def test_a_picture_that_cannot_be_written_after_all_is_said_by_its_name(
    cli: Cli, tmp_path: Path
) -> None:
    taken = tmp_path / "out.png"
    taken.mkdir()

    answer = cli("simulate", "--org", "a=1", "--plot", taken)

    assert (answer.returncode, answer.stdout) == (2, "")
    assert f"--plot {taken}: cannot be written" in answer.stderr
