"""The alert rules and the dashboard, held against promtool and the list of metrics."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chart.helm import CHART, only

if TYPE_CHECKING:
    from chart.helm import Helm, Manifest

METRICS = CHART.parents[1] / "docs" / "metrics.md"
CASES = Path(__file__).parent / "alert_cases.yaml"
NAME = re.compile(r"fairlease_[a-z_]+")
SUFFIX = re.compile(r"_(bucket|sum|count)$")
ALERTS = {
    "FairleaseOldestMessageTooOld": "critical",
    "FairleaseDeadLettersGrowing": "warning",
    "FairleaseNoRuns": "critical",
    "FairleaseNoMetrics": "warning",
    "FairleaseCapSaturated": "warning",
    "FairleaseRedeliveries": "warning",
    "FairleaseDegraded": "warning",
}


def documented() -> dict[str, str]:
    """Type by name."""
    rows = re.findall(r"^\| `(fairlease_\w+)` \| (\w+)", METRICS.read_text(), re.MULTILINE)
    return dict(rows)


def expressions(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def promtool(*arguments: object) -> str:
    binary = shutil.which("promtool") or shutil.which("promtool", path=f"{sys.prefix}/bin")
    if binary is None:
        pytest.skip("promtool is missing: make chart")
    answer = subprocess.run(
        [binary, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def rule(helm: Helm) -> Manifest:
    return only(helm.render("--set", "prometheusRule.enabled=true"), "PrometheusRule")


@pytest.fixture(scope="module")
def rules_file(rule: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("rules") / "rules.yaml"
    file.write_text(json.dumps(rule["spec"]))
    return file


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CHART / "files" / "dashboard.json").read_text())
    return found


def test_the_alerts_are_those_that_are_promised(rule: Manifest) -> None:
    (group,) = rule["spec"]["groups"]
    assert {r["alert"]: r["labels"]["severity"] for r in group["rules"]} == ALERTS
    oldest = group["rules"][0]
    assert oldest["expr"].endswith("> 1200")
    assert oldest["for"] == "10m"


def test_alerts_say_what_it_is_and_what_to_do(rule: Manifest) -> None:
    for one in rule["spec"]["groups"][0]["rules"]:
        assert one["annotations"]["summary"]
        assert len(one["annotations"]["description"]) > 40


def test_alerts_use_documented_metrics_of_this_release_only(rule: Manifest) -> None:
    for one in rule["spec"]["groups"][0]["rules"]:
        assert set(NAME.findall(one["expr"])) <= documented().keys()
        series = re.findall(r"fairlease_\w+(\{[^}]*\})?", one["expr"])
        assert all('namespace="default",job="fairlease"' in braces for braces in series)


def test_promtool_accepts_the_rules(rules_file: Path) -> None:
    assert "7 rules found" in promtool("check", "rules", rules_file)


def test_alerts_fire_and_stay_silent_as_they_should(rules_file: Path) -> None:
    shutil.copy(CASES, rules_file.parent)
    assert "SUCCESS" in promtool("test", "rules", rules_file.parent / CASES.name)


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    text = CASES.read_text()
    for alert in ALERTS:
        cases = re.findall(rf"alertname: {alert}\n\s+exp_alerts: ?(\[\])?", text)
        assert "[]" in cases, alert
        assert "" in cases, alert


def test_the_dashboard_uses_documented_metrics_and_all_that_are_promised(
    dashboard: dict[str, Any],
) -> None:
    used = {SUFFIX.sub("", name) for one in expressions(dashboard) for name in NAME.findall(one)}
    assert used == documented().keys()


def test_histograms_are_asked_for_as_histograms(dashboard: dict[str, Any]) -> None:
    histograms = {name for name, kind in documented().items() if kind == "histogram"}
    for one in expressions(dashboard):
        for name in NAME.findall(one):
            assert (SUFFIX.sub("", name) in histograms) == name.endswith("_bucket")


def test_promtool_reads_every_expression_of_the_dashboard(
    dashboard: dict[str, Any], tmp_path: Path
) -> None:
    rules = [
        {"record": f"panel:{i}", "expr": one.replace("$__rate_interval", "5m")}
        for i, one in enumerate(expressions(dashboard))
    ]
    file = tmp_path / "panels.yaml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", file)


def test_promtool_reads_what_keda_asks(helm: Helm, tmp_path: Path) -> None:
    scaled = only(helm.render("-f", CHART / "ci" / "keda-values.yaml"), "ScaledObject")
    query = scaled["spec"]["triggers"][0]["metadata"]["query"]
    assert set(NAME.findall(query)) <= documented().keys()
    file = tmp_path / "keda.yaml"
    rules = [{"record": "keda:query", "expr": query}]
    file.write_text(json.dumps({"groups": [{"name": "keda", "rules": rules}]}))
    promtool("check", "rules", file)


def test_panels_have_their_own_place(dashboard: dict[str, Any]) -> None:
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


def test_the_dashboard_is_rendered_as_it_stands(helm: Helm, dashboard: dict[str, Any]) -> None:
    maps = {m["metadata"]["name"]: m for m in helm.render() if m["kind"] == "ConfigMap"}
    shown = maps["fairlease-dashboard"]
    assert json.loads(shown["data"]["fairlease.json"]) == dashboard
    assert shown["metadata"]["labels"]["grafana_dashboard"] == "1"


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PrometheusRule"])
def test_what_belongs_to_an_operator_comes_with_its_api_or_on_demand(helm: Helm, kind: str) -> None:
    value = kind[0].lower() + kind[1:]
    api = ("--api-versions", "monitoring.coreos.com/v1")

    def is_there(*flags: str) -> bool:
        return kind in {m["kind"] for m in helm.render(*flags)}

    assert not is_there()
    assert is_there(*api)
    assert is_there("--set", f"{value}.enabled=true")
    assert not is_there(*api, "--set", f"{value}.enabled=false")
