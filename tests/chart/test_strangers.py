"""What of a release others in the cluster, and beyond it, can read and reach."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from chart.helm import CHART, only

if TYPE_CHECKING:
    from pathlib import Path

    from chart.helm import Helm, Manifest

EXAMPLES = sorted(CHART.glob("ci/*-values.yaml"))
SECRET = re.compile(r"SECRET|TOKEN|PASSWORD|_KEY$|DATABASE_URL|_DSN$|_PEM$")
INGRESS = (
    *("--set", "ingress.enabled=true", "--set", "ingress.host=h"),
    *("--set", "ingress.tlsSecret=tls"),
)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_no_secret_stands_in_what_everybody_may_read(helm: Helm, example: Path) -> None:
    manifests = helm.render("-f", example)
    assert not [m for m in manifests if m["kind"] == "Secret"], "helm keeps what it renders"
    for settings in (m for m in manifests if m["kind"] == "ConfigMap"):
        assert [name for name in settings.get("data", {}) if SECRET.search(name)] == []
    for plain in variables_with_values(manifests):
        assert not SECRET.search(plain)


def variables_with_values(manifests: list[Manifest]) -> list[str]:
    """Names of variables whose value, and not a reference to it, stands in a manifest."""
    found = []

    def look(value: object) -> None:
        if isinstance(value, dict):
            if "name" in value and "value" in value:
                found.append(str(value["name"]))
            for below in value.values():
                look(below)
        elif isinstance(value, list):
            for below in value:
                look(below)

    look(manifests)
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_account_of_the_release_has_no_rights_and_no_token(helm: Helm, example: Path) -> None:
    manifests = helm.render("-f", example)
    roles = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    assert not [m for m in manifests if m["kind"] in roles]
    for account in (m for m in manifests if m["kind"] == "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False


def test_only_pokes_and_the_namespaces_named_reach_the_host(helm: Helm) -> None:
    policies = {m["metadata"]["name"]: m for m in helm.render() if m["kind"] == "NetworkPolicy"}
    host, poke = policies["fairlease"]["spec"], policies["fairlease-poke"]["spec"]
    (rule,) = host["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": 8787}]
    assert rule["from"] == [
        {"podSelector": {"matchLabels": poke["podSelector"]["matchLabels"]}},
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}},
    ]
    assert set(host["policyTypes"]) == set(poke["policyTypes"]) == {"Ingress", "Egress"}
    # Nobody has a reason to reach a pod that pokes.
    assert "ingress" not in poke


def test_from_outside_of_the_cluster_only_pokes_come_in(helm: Helm) -> None:
    ingress = only(helm.render(*INGRESS), "Ingress")
    paths = [path["path"] for rule in ingress["spec"]["rules"] for path in rule["http"]["paths"]]
    assert paths == ["/functions/v1/"]
