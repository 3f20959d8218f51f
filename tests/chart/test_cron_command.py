"""`fairlease cron k8s` and the chart agree, in the values and in every CronJob."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from unit.cron.folders import write

if TYPE_CHECKING:
    from chart.helm import Helm
    from cli import Cli

CHART = Path(__file__).parents[2] / "charts" / "fairlease"
# Labels and an account that belong to a release of the chart.
_OF_A_RELEASE = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
}


def without_release(manifest: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(manifest))
    template = plain["spec"]["jobTemplate"]["spec"]["template"]
    for labels in (plain["metadata"]["labels"], template["metadata"]["labels"]):
        for name in _OF_A_RELEASE & labels.keys():
            del labels[name]
    template["spec"].pop("serviceAccountName", None)
    return plain


def test_the_values_of_the_bundled_functions_are_the_charts_own(cli: Cli) -> None:
    printed = yaml.safe_load(cli("cron", "k8s").stdout)
    own = yaml.safe_load((CHART / "values.yaml").read_text())
    assert printed["cron"]["functions"] == own["cron"]["functions"]


@pytest.mark.parametrize("name", ["fairlease", "a-name-of-more-than-twenty", "a" * 40])
def test_each_cron_job_is_the_charts(cli: Cli, helm: Helm, tmp_path: Path, name: str) -> None:
    write(tmp_path, "invites", schedule="*/5 1-3 * jan mon", pokes=3)
    write(tmp_path, "a_b_", schedule="@daily")
    write(tmp_path, "f" * 48)
    values = yaml.safe_load(cli("cron", "k8s", "--functions", tmp_path).stdout)
    values |= {
        "fullnameOverride": name,
        "existingSecret": "pokes",
        "image": {"repository": "registry.example.com/fairlease", "tag": "1"},
    }
    rendered = [m for m in helm.render(values=values) if m["kind"] == "CronJob"]
    answer = cli(
        *("cron", "k8s", "--functions", tmp_path, "--name", name, "--secret", "pokes"),
        *("--image", "registry.example.com/fairlease:1"),
    )
    printed = json.loads(answer.stdout)["items"]
    expected = [without_release(manifest) for manifest in rendered]
    for manifest in printed:
        # The chart's is that of the chart, not of the release.
        for labels in (
            manifest["metadata"]["labels"],
            manifest["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"],
        ):
            assert labels.pop("app.kubernetes.io/name") == name
    for manifest in expected:
        del manifest["metadata"]["labels"]["app.kubernetes.io/name"]
        template = manifest["spec"]["jobTemplate"]["spec"]["template"]
        del template["metadata"]["labels"]["app.kubernetes.io/name"]
    by_name = {m["metadata"]["name"]: m for m in expected}
    assert {m["metadata"]["name"]: m for m in printed} == by_name


def test_the_cron_jobs_are_valid_for_kubernetes(cli: Cli) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="make chart installs it").validate
    answer = cli("cron", "k8s", "--image", "x:1", "--namespace", "workers")
    for manifest in json.loads(answer.stdout)["items"]:
        assert manifest["metadata"]["namespace"] == "workers"
        validate(manifest, "1.30", strict=True)
