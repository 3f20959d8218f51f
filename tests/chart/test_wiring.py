"""The parts of the chart against each other, and against what they run."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.main

from chart.helm import only
from chart.manifests import pods
from fairlease.cli.main import app
from fairlease.settings.required import _Variables

if TYPE_CHECKING:
    from chart.helm import Helm, Manifest

ROOT = Path(__file__).parents[2]
POKE = "CronJob/fairlease-github-worker"
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def manifests(helm: Helm) -> list[Manifest]:
    return helm.render()


def container(template: dict[str, Any]) -> dict[str, Any]:
    (found,) = template["spec"]["containers"]
    return dict(found)


def read_by_the_command(arguments: list[str]) -> dict[str, Any]:
    """As the command line of fairlease reads them, without doing it."""
    command = COMMANDS[arguments[0]]
    context = command.make_context(arguments[0], list(arguments[1:]))
    return dict(context.params)


def test_every_container_runs_a_command_that_there_is(manifests: list[Manifest]) -> None:
    run = {name: read_by_the_command(container(pod)["args"]) for name, pod in pods(manifests)}
    assert {"Deployment/fairlease", POKE, "Job/fairlease-migrate"} <= set(run)
    host = run["Deployment/fairlease"]
    assert (host["host"], host["port"], host["max_rss_mb"]) == ("0.0.0.0", 8787, 384)  # noqa: S104
    assert list(host["functions"]) == ["bundled"]
    assert run[POKE]["name"] == "github_worker"


def test_pokes_reach_the_service_and_the_service_the_host(manifests: list[Manifest]) -> None:
    (port,) = only(manifests, "Service")["spec"]["ports"]
    host = container(only(manifests, "Deployment")["spec"]["template"])
    (listening,) = host["ports"]
    arguments = read_by_the_command(host["args"])
    assert (port["targetPort"], listening["containerPort"]) == ("http", arguments["port"])
    assert listening["name"] == "http"
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert host[probe]["httpGet"]["port"] == "http"
    poke = dict(pods(manifests))[POKE]
    assert read_by_the_command(container(poke)["args"])["url"] == f"http://fairlease:{port['port']}"


def test_another_port_of_the_service_is_what_pokes_call(helm: Helm) -> None:
    rendered = helm.template("--set", "service.port=80,fullnameOverride=workers").stdout
    assert "- http://workers:80\n" in rendered
    assert "containerPort: 8787\n" in rendered


def test_pokes_are_those_of_the_function_files(manifests: list[Manifest]) -> None:
    kept = [tomllib.loads(f.read_text()) for f in ROOT.glob("functions/*/function.toml")]
    jobs = {m["metadata"]["labels"]["fairlease/function"]: m["spec"] for m in cron_jobs(manifests)}
    assert set(jobs) == {one["name"] for one in kept}
    for one in kept:
        job = jobs[one["name"]]
        assert job["schedule"] == one["schedule"]
        assert job["jobTemplate"]["spec"]["completions"] == one.get("pokes", 1)
        assert job["jobTemplate"]["spec"]["parallelism"] == one.get("pokes", 1)


def cron_jobs(manifests: list[Manifest]) -> list[Manifest]:
    return [m for m in manifests if m["kind"] == "CronJob"]


def test_pg_cron_instead_leaves_no_cron_job(helm: Helm) -> None:
    assert cron_jobs(helm.render("--set", "cron.enabled=false")) == []


def test_what_is_off_by_default_is_off(manifests: list[Manifest]) -> None:
    off = {"HorizontalPodAutoscaler", "ScaledObject", "Ingress", "Secret"}
    assert off & {m["kind"] for m in manifests} == set()


def test_each_pod_is_given_the_secrets_that_it_needs_and_no_more(
    manifests: list[Manifest],
) -> None:
    given = {
        name: {e["name"]: e["valueFrom"]["secretKeyRef"] for e in container(pod)["env"]}
        for name, pod in pods(manifests)
    }
    known = {str(f.validation_alias) for f in _Variables.model_fields.values()}
    assert set(given["Deployment/fairlease"]) <= known
    assert set(given[POKE]) == {"EDGE_FUNCTION_SECRET"}
    assert set(given["Job/fairlease-migrate"]) == {"FAIRLEASE_DATABASE_URL"}
    for references in given.values():
        for name, reference in references.items():
            assert (reference["name"], reference["key"]) == ("fairlease", name)
            needed = name == "EDGE_FUNCTION_SECRET" or len(references) == 1
            assert reference.get("optional", False) is not needed


def test_another_secret_is_referred_to_everywhere(helm: Helm) -> None:
    rendered = helm.template("--set", "existingSecret=mine").stdout
    assert "name: mine\n" in rendered
    owner = helm.template("--set", "existingSecret=mine,migration.existingSecret=owner").stdout
    (job,) = (one for one in owner.split("---\n") if "kind: Job\n" in one)
    assert "name: owner\n" in job
    assert "name: mine\n" not in job


def test_no_memory_limit_of_its_own_is_no_argument(helm: Helm) -> None:
    for form in ("--set", "--set-string"):
        raw = "null" if form == "--set" else ""
        assert "--max-rss-mb" not in helm.template(form, f"worker.maxRssMb={raw}").stdout


def test_the_image_is_the_version_unless_a_tag_or_a_digest_says_otherwise(helm: Helm) -> None:
    digest = f"sha256:{'ab' * 32}"
    assert 'image: "fairlease:0.1.0"\n' in helm.template().stdout
    assert 'image: "fairlease:7"\n' in helm.template("--set", "image.tag=7").stdout
    both = ("--set", f"image.tag=7,image.digest={digest}")
    assert f'image: "fairlease@{digest}"\n' in helm.template(*both).stdout
