"""What is written by charts/generate.py is as it would be written now."""

from __future__ import annotations

import importlib.util
import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "fairlease"
REMEDY = "run `.venv/bin/python charts/generate.py` and commit what it changed"


@pytest.fixture(scope="module")
def generate() -> Any:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "charts" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_facts_of_the_knobs_are_fresh(generate: Any) -> None:
    kept = (CHART / "files" / "knobs.json").read_text()
    assert kept == generate.knob_facts(), REMEDY


def test_the_schema_is_fresh(generate: Any) -> None:
    assert (CHART / "values.schema.json").read_text() == generate.schema(), REMEDY


def test_the_values_document_every_knob_and_poke_every_bundled_function(generate: Any) -> None:
    kept = (CHART / "values.yaml").read_text()
    assert kept == generate.values(kept), REMEDY
    for manifest in ROOT.glob("functions/*/function.toml"):
        assert f"- name: {manifest.parent.name}\n" in kept


def test_every_change_of_the_chart_has_a_version_of_its_own(generate: Any) -> None:
    known = json.loads((ROOT / "charts" / "digests.json").read_text())
    assert known.get(generate.version()) == generate.digest(), REMEDY
    assert len(set(known.values())) == len(known)


@pytest.mark.parametrize(
    "name", ["templates/deployment.yaml", "values.yaml", "files/dashboard.json", "templates/new"]
)
def test_a_changed_file_changes_the_digest(generate: Any, tmp_path: Path, name: str) -> None:
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    assert generate.digest(chart) == generate.digest()
    with (chart / name).open("a") as file:
        file.write("\n")
    assert generate.digest(chart) != generate.digest()


def test_the_version_alone_does_not_change_the_digest(generate: Any, tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    file = chart / "Chart.yaml"
    file.write_text(file.read_text().replace("version: ", "version: 9", 1))
    assert generate.digest(chart) == generate.digest()


def test_a_change_is_given_the_next_version(generate: Any, tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    (chart / "Chart.yaml").write_text("version: 1.2.3\n")
    digests = tmp_path / "digests.json"
    digests.write_text(json.dumps({"1.2.3": "of another content"}))
    generate.record(chart, digests)
    generate.record(chart, digests)
    assert (chart / "Chart.yaml").read_text() == "version: 1.2.4\n"
    known = json.loads(digests.read_text())
    assert known == {"1.2.3": "of another content", "1.2.4": generate.digest(chart)}


def test_the_chart_installs_this_version_of_fairlease() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f'\nappVersion: "{project["version"]}"\n' in (CHART / "Chart.yaml").read_text()


def test_the_schema_shows_the_range_of_every_knob(generate: Any) -> None:
    shown = json.loads(generate.schema())["properties"]["knobs"]["properties"]
    for entry in generate.as_json():
        assert shown[entry["camel"]]["minimum"] == entry["minimum"]
        assert shown[entry["camel"]].get("maximum") == entry["maximum"]
        assert entry["env"] in shown[entry["camel"]]["description"]
