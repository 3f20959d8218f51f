"""The same pokes for Kubernetes: as values of the chart, or as CronJobs equal to the chart's."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlease.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlease.cron.jobs import PokeJob

# Kubernetes appends eleven characters to a CronJob's name and allows 63.
_LONGEST_NAME = 52
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_SHORT_PREFIX = 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the CronJobs run. `name` is that of the hosts' Service and begins theirs."""

    image: str
    name: str = "fairlease"
    secret: str = "fairlease"  # noqa: S105 - its name
    url: str = "http://fairlease:8787"
    namespace: str = ""


def checked_name(name: str) -> str:
    """Raises InvalidInput."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"--name {name[:60]!r}: give 1 to 40 lower-case letters, digits and hyphens, "
            "as a Service has"
        )
    return name


def chart_values(jobs: Sequence[PokeJob]) -> dict[str, Any]:
    """What the chart's value `cron.functions` is to be."""
    listed = [{"name": job.function, "schedule": job.schedule, "pokes": job.pokes} for job in jobs]
    return {"cron": {"functions": listed}}


def values_yaml(jobs: Sequence[PokeJob]) -> str:
    """`chart_values` for a file of values; a JSON string is a YAML string."""
    lines = ["cron:", "  functions:"]
    for entry in chart_values(jobs)["cron"]["functions"]:
        lines += [
            f"    - name: {json.dumps(entry['name'])}",
            f"      schedule: {json.dumps(entry['schedule'])}",
            f"      pokes: {entry['pokes']}",
        ]
    return "\n".join(lines) + "\n"


def manifests(jobs: Sequence[PokeJob], cluster: Cluster) -> dict[str, Any]:
    """One list of CronJobs; `kubectl apply -f -` takes it as JSON."""
    items = [_cron_job(job, cluster) for job in jobs]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def cron_job_name(name: str, function: str) -> str:
    """As the chart names it: unique also where hyphens and length make functions look alike."""
    readable = f"{name[:_SHORT_PREFIX].removesuffix('-')}-{function.replace('_', '-')}"
    if len(readable) <= _LONGEST_NAME and not readable.endswith("-") and len(name) <= _SHORT_PREFIX:
        return readable
    digest = hashlib.sha256(f"{name}/{function}".encode()).hexdigest()[:8]
    return f"{readable[:43].removesuffix('-')}-{digest}"


def _cron_job(job: PokeJob, cluster: Cluster) -> dict[str, Any]:
    selector = {"app.kubernetes.io/name": cluster.name, "app.kubernetes.io/component": "poke"}
    metadata: dict[str, Any] = {
        "name": cron_job_name(cluster.name, job.function),
        "labels": {**selector, "fairlease/function": job.function.removesuffix("_")},
    }
    if cluster.namespace:
        metadata["namespace"] = cluster.namespace
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata,
        "spec": {
            "schedule": job.schedule,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 200,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {
                "spec": {
                    # Side by side, so that they find different hosts.
                    "completions": job.pokes,
                    "parallelism": job.pokes,
                    "backoffLimit": 3,
                    "activeDeadlineSeconds": 55,
                    "template": {"metadata": {"labels": selector}, "spec": _pod(job, cluster)},
                }
            },
        },
    }


def _pod(job: PokeJob, cluster: Cluster) -> dict[str, Any]:
    """Fits the restricted pod security standard."""
    key = "EDGE_FUNCTION_SECRET"
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "runAsGroup": 10001,
            "fsGroup": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "poke",
                "image": cluster.image,
                "imagePullPolicy": "IfNotPresent",
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "args": ["poke", job.function, "--url", cluster.url],
                "env": [
                    {
                        "name": key,
                        "valueFrom": {"secretKeyRef": {"name": cluster.secret, "key": key}},
                    }
                ],
                "resources": {
                    "requests": {"cpu": "20m", "memory": "64Mi"},
                    "limits": {"memory": "128Mi"},
                },
            }
        ],
    }
