"""A value that is taken away is a default or a refusal, never a zero that nobody wrote."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from chart.helm import CHART
from chart.manifests import CUSTOM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chart.helm import Helm

#: With everything on, so that every value is rendered somewhere.
ON = (
    "prometheusRule.enabled=true,serviceMonitor.enabled=true",
    "ingress.enabled=true,ingress.host=workers.example.com",
)
#: What may be taken away, with all that is below it.
OPTIONAL = {
    *("image.tag", "image.digest", "imagePullSecrets", "transport", "supabaseUrl", "functions"),
    *("worker", "terminationGracePeriodSeconds", "knobs", "cron.functions", "cron.timeZone"),
    *("cron.resources", "migration.existingSecret", "migration.resources", "resources"),
    *("service.annotations", "ingress.className", "ingress.tlsSecret", "ingress.annotations"),
    *("autoscaling.hpa.metrics", "autoscaling.keda.triggers", "autoscaling.keda.prometheusAddress"),
    *("podDisruptionBudget.maxUnavailable", "podDisruptionBudget.minAvailable"),
    *("networkPolicy.allowFromNamespaces", "networkPolicy.egressPorts"),
    *("networkPolicy.extraEgress", "serviceMonitor.labels", "prometheusRule.labels"),
    *("prometheusRule.matchers", "dashboard.labels", "dashboard.annotations"),
    *("serviceAccount.name", "serviceAccount.annotations", "runAsUser", "preStopSeconds"),
    *(
        f"probes.{probe}.{value}"
        for probe in ("startup", "readiness", "liveness")
        for value in ("periodSeconds", "failureThreshold", "timeoutSeconds")
    ),
    *("extraEnv", "extraEnvFrom", "extraVolumes", "extraVolumeMounts", "podAnnotations"),
    *("podLabels", "nodeSelector", "tolerations", "affinity", "priorityClassName"),
    *("topologySpreadConstraints", "nameOverride", "fullnameOverride"),
}


def paths(values: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, value in values.items():
        path = f"{above}{name}"
        yield path
        if isinstance(value, dict):
            yield from paths(value, f"{path}.")


ALL = list(paths(yaml.safe_load((CHART / "values.yaml").read_text())))


def is_optional(path: str) -> bool:
    return any(path == one or path.startswith(f"{one}.") for one in OPTIONAL)


def without(helm: Helm, taken: list[str]) -> str:
    """What is said where these are null."""
    return helm.template(*flags(taken)).stderr


def flags(taken: list[str]) -> list[str]:
    return [*("--set", ",".join(ON)), *("--set", ",".join(f"{path}=null" for path in taken))]


def missed(said: str) -> set[str]:
    """Paths of what the schema misses."""
    assert "values don't meet the specifications" in said, said
    found = re.findall(r"at '(.*?)': missing propert(?:y|ies) (.*)", said)
    return {
        f"{place}/{name}".strip("/").replace("/", ".")
        for place, names in found
        for name in re.findall(r"'(\w+)'", names)
    }


NEEDED = [path for path in ALL if not is_optional(path)]
GROUPS = [path for path in NEEDED if any(other.startswith(f"{path}.") for other in NEEDED)]
LEAVES = [path for path in NEEDED if path not in GROUPS and path not in ",".join(ON)]


def test_what_cannot_be_absent_is_refused_by_name(helm: Helm) -> None:
    assert missed(without(helm, LEAVES)) == set(LEAVES)


def test_nor_can_a_group_of_such_values(helm: Helm) -> None:
    whole = [path for path in GROUPS if "." not in path]
    assert missed(without(helm, whole)) == set(whole)
    parts = [path for path in GROUPS if "." in path]
    assert missed(without(helm, parts)) == set(parts)


@pytest.mark.parametrize("path", [one.partition("=")[0] for one in ",".join(ON).split(",")])
def test_nor_can_a_switch(helm: Helm, path: str) -> None:
    on = ",".join(one for one in ",".join(ON).split(",") if not one.startswith(path))
    answer = helm.template("--set", f"{on},{path}=null")
    assert missed(answer.stderr) == {path}


def check_valid(helm: Helm, taken: list[str]) -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="make chart installs it")
    for manifest in helm.render(*flags(taken)):
        if manifest["kind"] not in CUSTOM:
            kubernetes.validate(manifest, "1.37.0", strict=True)
        assert "<nil>" not in str(manifest)


def test_all_that_may_be_absent_may_be_at_once(helm: Helm) -> None:
    check_valid(helm, sorted(OPTIONAL))


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in ALL if is_optional(path)])
def test_what_may_be_absent_leaves_valid_manifests(helm: Helm, path: str) -> None:
    check_valid(helm, [path])


def test_every_value_that_may_be_absent_exists() -> None:
    assert set(ALL) >= OPTIONAL
