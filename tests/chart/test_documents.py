"""The commands of the documentation are commands that work, as far as there is no cluster."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from chart.helm import CHART, find_tool
from unit.cron.folders import write

if TYPE_CHECKING:
    from chart.helm import Helm
    from cli import Cli

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "deploy-kubernetes.md"
TEXT = DOCUMENT.read_text()
LINES = [
    line[2:].replace("\\\n   ", "")
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    for line in re.split(r"\n(?=\$ )", block.rstrip())
]
IN_A_POD = "kubectl -n workers exec deploy/fairlease -- "
needs_kubectl = pytest.mark.skipif(find_tool("kubectl") is None, reason="no kubectl here")


def of(program: str) -> list[str]:
    return [line for line in LINES if line.startswith(f"{program} ")]


def test_every_line_is_a_command_that_is_looked_at_here() -> None:
    assert {line.split()[0] for line in LINES} == {"docker", "kubectl", "helm", "fairlease"}
    assert len(of("helm")) >= 9


@pytest.fixture
def cron_values(cli: Cli, tmp_path: Path) -> Path:
    """What the documented `fairlease cron k8s` writes for a folder with one function."""
    (tmp_path / "functions").mkdir()
    write(tmp_path / "functions", "invites")
    (line,) = (one for one in of("fairlease") if one.endswith("> cron.yaml"))
    words = shlex.split(line.partition(" > ")[0].replace("./functions", f"{tmp_path}/functions"))
    file = tmp_path / "cron.yaml"
    file.write_text(cli(*words[1:]).stdout)
    return file


@pytest.mark.parametrize("line", of("helm"), ids=lambda line: line[-40:])
def test_a_documented_helm_command_renders(helm: Helm, line: str, cron_values: Path) -> None:
    words = shlex.split(line.replace("cron.yaml", str(cron_values)))
    flags = words[words.index("charts/fairlease") + 1 :]
    answer = helm.template(*(flag for flag in flags if flag != "--reuse-values"))
    assert answer.returncode == 0, answer.stderr


def test_the_list_that_is_written_pokes_bundled_and_own_functions(
    helm: Helm, cron_values: Path
) -> None:
    rendered = helm.render("--values", cron_values)
    names = {m["metadata"]["name"] for m in rendered if m["kind"] == "CronJob"}
    assert {"fairlease-invites", "fairlease-github-worker"} < names


def test_the_cron_jobs_without_the_chart_run_the_image_that_is_built(
    cli: Cli, cron_values: Path
) -> None:
    (line,) = (one for one in of("fairlease") if "| kubectl apply -f -" in one)
    words = shlex.split(line.partition(" | ")[0].replace("./", f"{cron_values.parent}/"))
    (job,) = json.loads(cli(*words[1:]).stdout)["items"]
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert f"-t {container['image']} " in f"{of('docker')[0]} "
    assert job["metadata"]["namespace"] == "workers"


def test_the_image_that_is_built_is_the_one_that_is_installed(helm: Helm) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    (tag,) = {shlex.split(line)[3 if "build" in line else 2] for line in of("docker")}
    (install,) = (line for line in of("helm") if "image.repository" in line)
    repository = re.search(r"image\.repository=(\S+)", install)
    assert repository is not None
    assert tag == f"{repository[1]}:{version}"
    assert f'image: "{tag}"' in helm.template("--set", repository[0]).stdout


def kubectl(line: str) -> subprocess.CompletedProcess[str]:
    """With no cluster to talk to."""
    program = find_tool("kubectl")
    command = f"{program} {line.removeprefix('kubectl ')}"
    environment = {"PATH": "/usr/bin:/bin", "KUBECONFIG": "/dev/null", "HOME": "/nonexistent"}
    return subprocess.run(
        ["bash", "-euc", command], env=environment, capture_output=True, text=True, check=False
    )


def made(line: str) -> dict[str, Any]:
    answer = kubectl(f"{line} --dry-run=client -o json")
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


@needs_kubectl
def test_the_secrets_that_are_made_are_those_that_the_chart_refers_to(helm: Helm) -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    objects = [made(line) for line in of("kubectl") if " create " in line and "exec" not in line]
    kinds = [(one["kind"], one["metadata"]["name"]) for one in objects]
    assert kinds == [("Namespace", "workers"), ("Secret", "fairlease"), ("Secret", "github")]
    ours, github = objects[1], objects[2]
    assert ours["metadata"]["name"] == values["existingSecret"]
    assert set(ours["data"]) <= {"EDGE_FUNCTION_SECRET", *values["secretKeys"]}
    assert {"EDGE_FUNCTION_SECRET", "SUPABASE_URL", "FAIRLEASE_DATABASE_URL"} <= set(ours["data"])
    (install,) = (line for line in of("helm") if "extraEnvFrom" in line)
    assert f"secretRef.name={github['metadata']['name']}" in install


@needs_kubectl
@pytest.mark.parametrize("line", [x for x in of("kubectl") if "create secret" not in x])
def test_kubectl_understands_every_command_and_misses_only_the_cluster(line: str) -> None:
    if "create namespace" in line:
        assert made(line)["kind"] == "Namespace"
        return
    asked = line.replace("kubectl ", "kubectl --server http://127.0.0.1:1 ", 1)
    answer = kubectl(asked)
    assert answer.returncode == 1
    assert "connection to the server 127.0.0.1:1 was refused" in answer.stderr


def test_what_is_run_in_a_pod_works_from_an_empty_database_to_a_message(
    cli: Cli, database: str
) -> None:
    lines = [line.removeprefix(IN_A_POD) for line in LINES if line.startswith(IN_A_POD)]
    assert len(lines) >= 5
    said = {}
    for line in lines:
        answer = cli(*shlex.split(line)[1:], url=database)
        assert answer.returncode == 0, (line, answer)
        said[line.split()[1]] = answer.stdout
    assert "2 queues are attached" in said["doctor"]
    assert said["send"] == "1\n"
    assert said["message"].startswith("where: queue\nmsg_id: 1\norg: acme\nmethod: create_repo\n")


def test_the_documented_refusal_is_what_is_said(helm: Helm) -> None:
    said = helm.refusal("--set", "knobs.orgSlotRunBudgetSeconds=330")
    documented = re.search(r"```\n- (knobs\..*?)```", TEXT, re.DOTALL)
    assert documented is not None
    assert " ".join(documented[1].split()) in said


def test_every_alert_is_documented(helm: Helm) -> None:
    rendered = helm.template("--set", "prometheusRule.enabled=true").stdout
    assert set(re.findall(r"alert: (\w+)", rendered)) == set(re.findall(r"`(Fairlease\w+)`", TEXT))


@pytest.mark.parametrize("link", re.findall(r"\]\((?!https:)([^)#]+)\)", TEXT))
def test_a_link_leads_to_a_file(link: str) -> None:
    assert (DOCUMENT.parent / link).exists()
