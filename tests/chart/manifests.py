"""What to ask of any set of manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chart.helm import Manifest

#: Kinds of operators, of which Kubernetes has no schema.
CUSTOM = {"ServiceMonitor", "PrometheusRule", "ScaledObject"}


def key(manifest: Manifest) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def pod_of(manifest: Manifest) -> dict[str, Any] | None:
    """The pod's template, for the kinds that have one."""
    spec = manifest.get("spec", {})
    if manifest["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    found: dict[str, Any] | None = spec.get("template")
    return found


def pods(manifests: list[Manifest]) -> Iterator[tuple[str, dict[str, Any]]]:
    for manifest in manifests:
        template = pod_of(manifest)
        if template is not None:
            yield "/".join(key(manifest)), template


def not_restricted(pod: dict[str, Any]) -> list[str]:
    """Where a pod's spec misses the restricted pod security standard, or a read-only root."""
    wrong = []
    if pod["securityContext"].get("runAsNonRoot") is not True:
        wrong.append("may run as root")
    if pod["securityContext"].get("seccompProfile", {}).get("type") != "RuntimeDefault":
        wrong.append("no seccomp profile")
    if pod["securityContext"].get("runAsUser") == 0:
        wrong.append("runs as root")
    wrong += [f"uses {name}" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)]
    if pod.get("automountServiceAccountToken") is not False:
        wrong.append("has a token for the API")
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        security = container.get("securityContext", {})
        if security.get("allowPrivilegeEscalation") is not False:
            wrong.append("may gain privileges")
        if security.get("readOnlyRootFilesystem") is not True:
            wrong.append("may write to its root")
        if security.get("capabilities") != {"drop": ["ALL"]} or security.get("privileged"):
            wrong.append("keeps capabilities")
    wrong += [f"mounts {v['name']}" for v in pod.get("volumes", []) if "hostPath" in v]
    return wrong


def twice(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def repeated_merge_keys(pod: dict[str, Any]) -> list[str]:
    """Lists that Kubernetes merges by a key, with a key that stands twice."""
    found = twice([volume["name"] for volume in pod.get("volumes", [])])
    for container in pod["containers"]:
        found += twice([one["name"] for one in container.get("env", [])])
        found += twice([one["mountPath"] for one in container.get("volumeMounts", [])])
        found += twice([str(one["containerPort"]) for one in container.get("ports", [])])
    return found
