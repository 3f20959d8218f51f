"""What each object of the chart is for, beyond being valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chart.helm import CHART, only

if TYPE_CHECKING:
    from chart.helm import Helm, Manifest

EXAMPLES = sorted(CHART.glob("ci/*-values.yaml"))
NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"


def named(manifests: list[Manifest], kind: str, name: str) -> Manifest:
    (found,) = (m for m in manifests if (m["kind"], m["metadata"]["name"]) == (kind, name))
    return found


def components(peers: list[dict[str, Any]]) -> list[str]:
    return [p["podSelector"]["matchLabels"][COMPONENT] for p in peers if "podSelector" in p]


def namespaces(peers: list[dict[str, Any]]) -> list[str]:
    label = "kubernetes.io/metadata.name"
    return [p["namespaceSelector"]["matchLabels"][label] for p in peers if "podSelector" not in p]


def test_the_host_is_reached_by_pokes_and_the_namespaces_that_are_named(helm: Helm) -> None:
    policy = named(
        helm.render("--set", "networkPolicy.allowFromNamespaces={monitoring,edge}"),
        "NetworkPolicy",
        "fairlease",
    )
    (rule,) = policy["spec"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": 8787}]
    assert (components(rule["from"]), namespaces(rule["from"])) == (
        ["poke"],
        ["monitoring", "edge"],
    )
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_the_host_reaches_names_and_the_ports_that_are_named(helm: Helm) -> None:
    flags = ("--set", "networkPolicy.egressPorts={443,6543}")
    (rule,) = named(helm.render(*flags), "NetworkPolicy", "fairlease")["spec"]["egress"]
    assert {(p["protocol"], p["port"]) for p in rule["ports"]} == {
        ("UDP", 53),
        ("TCP", 53),
        ("TCP", 443),
        ("TCP", 6543),
    }


def test_a_poke_reaches_the_host_and_names_and_nobody_reaches_it(helm: Helm) -> None:
    policy = named(helm.render(), "NetworkPolicy", "fairlease-poke")["spec"]
    assert policy["podSelector"]["matchLabels"][COMPONENT] == "poke"
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy
    names, host = policy["egress"]
    assert {port["port"] for port in names["ports"]} == {53}
    assert [port["port"] for port in host["ports"]] == [8787]
    assert components(host["to"]) == ["host"]


def test_what_scrapes_the_hosts_finds_their_service(helm: Helm) -> None:
    manifests = helm.render("--set", "serviceMonitor.enabled=true,serviceMonitor.interval=15s")
    monitor, service = only(manifests, "ServiceMonitor")["spec"], only(manifests, "Service")
    wanted = monitor["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    assert monitor["endpoints"] == [{"port": "http", "path": "/metrics", "interval": "15s"}]
    assert [port["name"] for port in service["spec"]["ports"]] == ["http"]
    # The label `job` of a series is the name of the Service, by which alerts know their release.
    assert service["metadata"]["name"] == "fairlease"


@pytest.mark.parametrize(
    ("flags", "spec"),
    [
        ("replicas=2", {"maxUnavailable": 1}),
        ("podDisruptionBudget.maxUnavailable=25%", {"maxUnavailable": "25%"}),
        ("podDisruptionBudget.maxUnavailable=0", {"maxUnavailable": 0}),
        (
            "podDisruptionBudget.maxUnavailable=null,podDisruptionBudget.minAvailable=0",
            {"minAvailable": 0},
        ),
        ("podDisruptionBudget.maxUnavailable=null", {"maxUnavailable": 1}),
    ],
)
def test_a_disruption_budget_says_one_thing(helm: Helm, flags: str, spec: dict[str, Any]) -> None:
    budget = only(helm.render("--set", flags), "PodDisruptionBudget")["spec"]
    del budget["selector"]
    assert budget == spec


def test_the_hpa_keeps_to_its_bounds_and_scales_by_cpu_unless_told_otherwise(helm: Helm) -> None:
    flags = (
        "autoscaling.hpa.enabled=true,autoscaling.hpa.minReplicas=3,autoscaling.hpa.maxReplicas=9"
    )
    spec = only(helm.render("--set", flags), "HorizontalPodAutoscaler")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (3, 9)
    (metric,) = spec["metrics"]
    assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 70}
    own = [{"type": "External", "external": {"metric": {"name": "x"}, "target": {"type": "Value"}}}]
    told = {"autoscaling": {"hpa": {"enabled": True, "metrics": own}}}
    assert only(helm.render(values=told), "HorizontalPodAutoscaler")["spec"]["metrics"] == own


def test_keda_counts_the_messages_that_wait_once_for_each_queue(helm: Helm) -> None:
    values = CHART / "ci" / "keda-values.yaml"
    spec = only(helm.render("-f", values), "ScaledObject")["spec"]
    (trigger,) = spec["triggers"]
    assert trigger["metadata"]["query"] == (
        'sum(max by (queue) (fairlease_queue_depth{namespace="default",job="fairlease",'
        'state="ready"}))'
    )
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (0, 12)
    assert trigger["metadata"]["threshold"] == "50"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_no_secret_is_rendered(helm: Helm, example: object) -> None:
    for manifest in helm.render("-f", example):
        assert manifest["kind"] != "Secret"
        if manifest["kind"] == "ConfigMap":
            assert not {k for k in manifest["data"] if "SECRET" in k or "KEY" in k or "DSN" in k}


@pytest.mark.parametrize("tag", [20261207, "20261207", "v1.10", "1.10"])
def test_a_tag_is_rendered_as_it_was_written(helm: Helm, tag: object) -> None:
    rendered = helm.template(values={"image": {"tag": tag}}).stdout
    assert f'image: "fairlease:{tag}"\n' in rendered


def test_a_tag_that_has_lost_its_zero_is_refused(helm: Helm) -> None:
    answer = helm.template(values={"image": {"tag": 1.5}})
    assert answer.returncode != 0
    assert "/image/tag" in answer.stderr


def test_a_cluster_too_old_for_the_chart_is_refused(helm: Helm) -> None:
    answer = helm.template("--kube-version", "1.24.9")
    assert answer.returncode != 0
    assert "requires kubeVersion: >=1.25" in answer.stderr
    assert helm.template("--kube-version", "1.25.0").returncode == 0


def test_a_time_zone_is_refused_where_the_cluster_would_ignore_it(helm: Helm) -> None:
    zone = ("--set", "cron.timeZone=Europe/Berlin")
    said = helm.refusal(*zone, "--kube-version", "1.26.15")
    assert 'cron.timeZone="Europe/Berlin" needs Kubernetes 1.27, and this is 1.26.15' in said
    assert helm.template(*zone, "--kube-version", "1.27.0").returncode == 0
    pokes = ("--set", "cron.enabled=false")
    assert helm.template(*zone, *pokes, "--kube-version", "1.26.0").returncode == 0
