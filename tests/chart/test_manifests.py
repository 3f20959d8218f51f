"""Every set of example values, held against Kubernetes' own schemas and the pod standard."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

import pytest

from chart.helm import CHART
from chart.manifests import CUSTOM, key, not_restricted, pods, repeated_merge_keys

if TYPE_CHECKING:
    from pathlib import Path

    from chart.helm import Helm, Manifest

EXAMPLES = sorted(CHART.glob("ci/*-values.yaml"))
MONITORING = ("--api-versions", "monitoring.coreos.com/v1")
OLDEST_MINOR, NEWEST = 25, "1.37.0"
LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
#: What Kubernetes refuses to change once the object exists.
IMMUTABLE = {
    "Deployment": lambda m: m["spec"]["selector"],
    "Service": lambda m: m["spec"].get("clusterIP"),
}

examples = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def rendered(helm: Helm) -> dict[Path, list[Manifest]]:
    return {
        example: helm.render("-f", example, "--is-upgrade", *MONITORING) for example in EXAMPLES
    }


@pytest.fixture(scope="module")
def distinct(rendered: dict[Path, list[Manifest]]) -> list[Manifest]:
    """Each manifest of any example once: most are the same in all of them."""
    return list({str(m): m for manifests in rendered.values() for m in manifests}.values())


def check_schemas(manifests: list[Manifest], version: str) -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="make chart installs it")
    for manifest in manifests:
        if manifest["kind"] not in CUSTOM:
            kubernetes.validate(manifest, version, strict=True)


def test_there_are_examples_and_they_differ(rendered: dict[Path, list[Manifest]]) -> None:
    assert len(EXAMPLES) >= 10
    assert len({str(manifests) for manifests in rendered.values()}) == len(EXAMPLES)


def test_manifests_fit_the_schemas_of_kubernetes(distinct: list[Manifest]) -> None:
    check_schemas(distinct, NEWEST)


@pytest.mark.slow
@pytest.mark.parametrize("minor", range(OLDEST_MINOR, 37))
def test_manifests_fit_every_version_that_the_chart_admits(
    distinct: list[Manifest], minor: int
) -> None:
    # timeZone, which one example sets, came with 1.27.
    known = [m for m in distinct if minor >= 27 or "timeZone" not in m.get("spec", {})]
    check_schemas(known, f"1.{minor}.0")


def test_the_schemas_notice_a_misspelling(rendered: dict[Path, list[Manifest]]) -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="make chart installs it")
    (deployment,) = (m for m in rendered[EXAMPLES[0]] if m["kind"] == "Deployment")
    spoiled: dict[str, Any] = {**deployment, "spec": {**deployment["spec"], "replica": 2}}
    with pytest.raises(kubernetes.ValidationError):
        kubernetes.validate(spoiled, NEWEST, strict=True)


@examples
def test_pods_are_restricted_and_merge_cleanly(
    rendered: dict[Path, list[Manifest]], example: Path
) -> None:
    found = dict(pods(rendered[example]))
    assert "Deployment/fairlease" in found
    for name, template in found.items():
        assert not_restricted(template["spec"]) == [], name
        assert repeated_merge_keys(template["spec"]) == [], name
        # Else a Service named fairlease would look like a misspelt knob.
        assert template["spec"]["enableServiceLinks"] is False


SPOILT = {
    "may run as root": {"securityContext": {"runAsNonRoot": False}},
    "runs as root": {"securityContext": {"runAsUser": 0}},
    "no seccomp profile": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    "uses hostNetwork": {"hostNetwork": True},
    "has a token for the API": {"automountServiceAccountToken": True},
    "may gain privileges": {"containers": {"allowPrivilegeEscalation": True}},
    "may write to its root": {"containers": {"readOnlyRootFilesystem": False}},
    "keeps capabilities": {"containers": {"capabilities": {"drop": []}}},
    "mounts logs": {"volumes": [{"name": "logs", "hostPath": {"path": "/var/log"}}]},
}


@pytest.mark.parametrize("says", SPOILT)
def test_the_pod_standard_notices(rendered: dict[Path, list[Manifest]], says: str) -> None:
    pod = copy.deepcopy(dict(pods(rendered[EXAMPLES[0]]))["Deployment/fairlease"]["spec"])
    for name, value in SPOILT[says].items():
        if name == "containers":
            pod["containers"][0]["securityContext"].update(value)
        elif name == "securityContext":
            pod[name].update(value)
        else:
            pod[name] = value
    assert not_restricted(pod) == [says]


@examples
def test_every_reference_within_the_release_resolves(
    rendered: dict[Path, list[Manifest]], example: Path
) -> None:
    manifests = {key(m): m for m in rendered[example]}
    labels = manifests["Deployment", "fairlease"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        manifests["Deployment", "fairlease"]["spec"]["selector"]["matchLabels"],
        manifests["Service", "fairlease"]["spec"]["selector"],
        manifests["PodDisruptionBudget", "fairlease"]["spec"]["selector"]["matchLabels"],
        manifests["NetworkPolicy", "fairlease"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels.items() for selector in selectors)
    for (kind, _), manifest in manifests.items():
        if kind in {"HorizontalPodAutoscaler", "ScaledObject"}:
            assert manifest["spec"]["scaleTargetRef"]["name"] == "fairlease"
            assert "replicas" not in manifests["Deployment", "fairlease"]["spec"]


def test_the_migration_refers_to_nothing_that_comes_after_it(
    rendered: dict[Path, list[Manifest]],
) -> None:
    (job,) = (m for m in rendered[EXAMPLES[1]] if m["kind"] == "Job")
    annotations = job["metadata"]["annotations"]
    assert annotations["helm.sh/hook"] == "pre-install,pre-upgrade"
    # A Job's pod cannot be changed: that of the last upgrade goes before the next one comes.
    assert "before-hook-creation" in annotations["helm.sh/hook-delete-policy"]
    pod = job["spec"]["template"]["spec"]
    assert "serviceAccountName" not in pod
    assert "configMap" not in str(pod)


@examples
def test_the_default_can_be_upgraded_to_every_example(
    rendered: dict[Path, list[Manifest]], example: Path
) -> None:
    before = {key(m): m for m in rendered[CHART / "ci" / "default-values.yaml"]}
    after = {key(m): m for m in rendered[example]}
    for both in before.keys() & after.keys():
        unchangeable = IMMUTABLE.get(both[0])
        if unchangeable is not None:
            assert unchangeable(before[both]) == unchangeable(after[both])
    settings = "ConfigMap", "fairlease"
    rolls = _checksum(before) != _checksum(after)
    assert rolls == (before[settings]["data"] != after[settings]["data"])


def _checksum(manifests: dict[tuple[str, str], Manifest]) -> str:
    template = manifests["Deployment", "fairlease"]["spec"]["template"]
    return str(template["metadata"]["annotations"]["checksum/settings"])


@pytest.mark.parametrize(
    "release", ["f", "fairlease", "a.b", "a-very-long.release-name-of-fifty-three-characters-xy"]
)
def test_names_stay_within_their_limits_and_apart(helm: Helm, release: str) -> None:
    functions = [*("a_b", "a_b_", "ab", "a"), *(f"{'x' * 46}_{i}" for i in range(3))]
    values = {
        "cron": {"functions": [{"name": name, "schedule": "* * * * *"} for name in functions]},
        "fullnameOverride": release,
    }
    manifests = helm.render(values=values)
    names = [key(m) for m in manifests]
    assert len(set(names)) == len(names)
    for kind, name in names:
        assert re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name)
        assert len(name) <= (52 if kind == "CronJob" else 63)
    for manifest in manifests:
        assert all(LABEL.fullmatch(v) for v in manifest["metadata"]["labels"].values())
