"""Writes what the chart has of the knobs and of the bundled functions, from where they are defined.

`python charts/generate.py` rewrites files/knobs.json, values.schema.json and the marked parts of
values.yaml, and gives a changed chart a new version, which it records in charts/digests.json.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

from fairlease.model import WORST_MESSAGE_SECONDS
from fairlease.resources import functions_folder
from fairlease.settings import EXIT_MARGIN_SECONDS
from fairlease.settings.knobs import SHORTEST_BUDGET_SECONDS
from fairlease.settings.table import as_json

CHARTS = Path(__file__).parent
CHART = CHARTS / "fairlease"
DIGESTS = CHARTS / "digests.json"
_VERSION = re.compile(r"^version: (\S+)$", re.MULTILINE)
_LIFETIME = "isolateLifetimeMs"


def knob_facts() -> str:
    """files/knobs.json: what the templates compute with."""
    lifetime = next(entry for entry in as_json() if entry["camel"] == _LIFETIME)
    facts = {
        "default_lifetime_ms": lifetime["fallback"],
        "shortest_lifetime_ms": lifetime["minimum"],
        "shortest_budget_seconds": SHORTEST_BUDGET_SECONDS,
        "worst_message_seconds": WORST_MESSAGE_SECONDS,
        "exit_margin_seconds": EXIT_MARGIN_SECONDS,
        "reserve_seconds": WORST_MESSAGE_SECONDS + EXIT_MARGIN_SECONDS,
        "knobs": [{key: entry[key] for key in _OF_A_KNOB if key in entry} for entry in as_json()],
    }
    return json.dumps(facts, indent=1) + "\n"


_OF_A_KNOB = ("camel", "env", "unit", "minimum", "maximum", "fallback", "derived")


def schema() -> str:
    """values.schema.json: charts/schema.json with the knobs."""
    whole: dict[str, Any] = json.loads((CHARTS / "schema.json").read_text())
    whole["properties"]["knobs"]["properties"] = {
        entry["camel"]: _property(entry) for entry in as_json()
    }
    return json.dumps(whole, indent=2) + "\n"


def _property(entry: dict[str, Any]) -> dict[str, Any]:
    """Of draft 7, an editor shows what stands beside $ref, and Helm leaves it alone.

    So a value out of range is refused by templates/validations.yaml, which names the remedy.
    """
    bounds = {"minimum": entry["minimum"]}
    if entry["maximum"] is not None:
        bounds["maximum"] = entry["maximum"]
    said = f"{entry['sentence']} {_range(entry)}; {_absent(entry)} if absent. {entry['env']}."
    return {"$ref": "#/definitions/number", "description": said, **bounds}


def values(text: str) -> str:
    """values.yaml with its marked parts written anew."""
    text = _between(text, "knobs", "".join(_knob_lines(entry) for entry in as_json()))
    return _between(text, "functions", "".join(_function_lines()))


def _between(text: str, name: str, content: str) -> str:
    begin, end = f"# {name}: written by charts/generate.py\n", f"# {name}: end\n"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"values.yaml has no part {begin.strip()!r} ... {end.strip()!r}; add it")
    indent = before[before.rfind("\n") + 1 :]
    return f"{before}{begin}{content}{indent}{end}{after}"


def _knob_lines(entry: dict[str, Any]) -> str:
    if entry["camel"] == _LIFETIME:
        return "  # isolateLifetimeMs: set worker.timeoutMs, which is the same\n"
    said = f"{entry['sentence']} {_range(entry)}."
    comment = textwrap.fill(said, 100, initial_indent="  # ", subsequent_indent="  # ")
    return f"{comment}\n  # {entry['camel']}: {entry['fallback']}\n"


def _range(entry: dict[str, Any]) -> str:
    low, high, unit = entry["minimum"], entry["maximum"], entry["unit"]
    if entry["derived"]:
        return f"{low} to max({low}, worker.timeoutMs / 1000 - 150) {unit}"
    if high is None:
        return f"{low} {unit} or more"
    return f"{low} or {high}" if unit == "0 or 1" else f"{low} to {high} {unit}"


def _absent(entry: dict[str, Any]) -> str:
    return "the maximum" if entry["derived"] else str(entry["fallback"])


def _function_lines() -> list[str]:
    manifests = sorted(functions_folder().glob("*/function.toml"))
    found = [tomllib.loads(file.read_text()) for file in manifests]
    return [
        f"    - name: {one['name']}\n"
        f'      schedule: "{one.get("schedule", "* * * * *")}"\n'
        f"      pokes: {one.get('pokes', 1)}\n"
        for one in found
    ]


def version(chart: Path = CHART) -> str:
    (found,) = _VERSION.findall((chart / "Chart.yaml").read_text())
    return str(found)


def digest(chart: Path = CHART) -> str:
    """Of everything that a release of the chart contains, but for its version."""
    whole = hashlib.sha256()
    for file in sorted(chart.rglob("*")):
        name = file.relative_to(chart).as_posix()
        if file.is_file() and not name.startswith("ci/"):
            text = file.read_text()
            if name == "Chart.yaml":
                text = _VERSION.sub("", text)
            whole.update(f"{name}\0{text}\0".encode())
    return whole.hexdigest()


def record(chart: Path = CHART, digests: Path = DIGESTS) -> None:
    """Give content that has no version yet the next one."""
    known: dict[str, str] = json.loads(digests.read_text())
    current = version(chart)
    if known.setdefault(current, digest(chart)) != digest(chart):
        major, minor, patch = current.split(".")
        current = f"{major}.{minor}.{int(patch) + 1}"
        file = chart / "Chart.yaml"
        file.write_text(_VERSION.sub(f"version: {current}", file.read_text()))
        known[current] = digest(chart)
    digests.write_text(json.dumps(known, indent=2) + "\n")
    sys.stdout.write(f"chart {current} {known[current][:12]}\n")


def main() -> None:
    (CHART / "files" / "knobs.json").write_text(knob_facts())
    (CHART / "values.schema.json").write_text(schema())
    file = CHART / "values.yaml"
    file.write_text(values(file.read_text()))
    record()


if __name__ == "__main__":
    main()
