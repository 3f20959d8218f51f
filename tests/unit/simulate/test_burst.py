"""The numbers that the engine has to reproduce, by the command that prints them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from fairlease.cli.main import app

if TYPE_CHECKING:
    from pathlib import Path

POINT = 0.01


@pytest.fixture(scope="module")
def compared() -> Any:
    said = CliRunner().invoke(app, ["simulate", "--json"])
    assert said.exit_code == 0, said.output
    return json.loads(said.stdout)


def test_batch_at_a_time_idles_while_the_slowest_of_each_batch_finishes(compared: Any) -> None:
    assert compared["batch"] == {
        "utilisation": pytest.approx(0.695, abs=POINT),
        "minutes": pytest.approx(54.9, rel=POINT),
        "claims": 52,
    }


def test_refill_keeps_four_in_flight(compared: Any) -> None:
    assert compared["refill"] == {
        "utilisation": pytest.approx(0.991, abs=POINT),
        "minutes": pytest.approx(38.6, rel=POINT),
        "claims": 194,
    }


def test_a_quantum_of_eight_that_doubles_costs_less_than_two_points(compared: Any) -> None:
    assert compared["quantum"]["utilisation"] >= 0.972


def test_the_sweep_of_the_quantum_without_its_doubling(compared: Any) -> None:
    measured = {"2": 0.800, "4": 0.901, "6": 0.931, "8": 0.937, "12": 0.965, "16": 0.965}

    assert compared["sweep"] == {k: pytest.approx(u, abs=POINT) for k, u in measured.items()}


def test_a_run_budget_leaves_nothing_stranded_by_the_kill(compared: Any) -> None:
    assert compared["stranded_without_budget"] == 4
    assert compared["stranded_with_budget"] == 0


def test_the_quantum_lets_a_second_org_in(compared: Any) -> None:
    assert compared["starved_first_message_index"] == {"with_quantum": 32, "without_quantum": 240}


def test_it_draws_what_it_measured(tmp_path: Path) -> None:
    picture = tmp_path / "burst.svg"

    said = CliRunner().invoke(app, ["simulate", "--org", "a=8", "--plot", str(picture)])

    assert said.exit_code == 0, said.output
    assert "in flight" in picture.read_text()
    assert "utilisation" in said.stdout
