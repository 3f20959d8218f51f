"""A Dockerfile as data, and its build steps carried out in folders instead of layers."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

Instruction = tuple[str, str]


def stages(text: str) -> list[list[Instruction]]:
    """The instructions of each stage; continuation lines joined, ARG before FROM left out."""
    lines = re.sub(r"\\\n", " ", "\n".join(x for x in text.splitlines() if not x.startswith("#")))
    found: list[list[Instruction]] = []
    for line in filter(None, map(str.strip, lines.splitlines())):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append((name, rest.strip()))
    return found


def values_of(stage: list[Instruction], name: str) -> list[str]:
    return [rest for instruction, rest in stage if instruction == name]


def is_ignored(path: str, rules: list[str]) -> bool:
    """As .dockerignore has it: the last rule that matches a path or a folder above it decides."""
    ignored = False
    parts = path.split("/")
    above = ["/".join(parts[: i + 1]) for i in range(len(parts))]
    for rule in rules:
        pattern = rule.removeprefix("!").removeprefix("**/")
        names = parts if rule.removeprefix("!").startswith("**/") else above
        if any(fnmatch.fnmatch(name, pattern) for name in names):
            ignored = not rule.startswith("!")
    return ignored


def rules_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@dataclass
class Build:
    """The first stage: `/opt`, `/src` and `/wheels` are folders of `root`."""

    root: Path
    context: Path
    base_python: Path
    rules: list[str]
    folder: str = "/"
    ran: list[str] = field(default_factory=list)

    def run(self, stage: list[Instruction]) -> None:
        for name, rest in stage:
            if name == "WORKDIR":
                self.folder = rest
                self.inside(rest).mkdir(parents=True)
            elif name == "COPY":
                self._copy(rest.split())
            elif name == "RUN":
                self._run(rest)

    def inside(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def _copy(self, words: list[str]) -> None:
        *sources, target = words
        into = self.inside(os.path.normpath(f"{self.folder}/{target}"))
        for source in sources:
            place = into if (self.context / source).is_dir() else into / Path(source).name
            self._copy_one(self.context / source, place)

    def _copy_one(self, source: Path, place: Path) -> None:
        name = source.relative_to(self.context).as_posix()
        if is_ignored(name, self.rules):
            return
        if source.is_dir():
            for child in source.iterdir():
                self._copy_one(child, place / child.name)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)

    def _run(self, command: str) -> None:
        tools = self.root / "base-image"
        tools.mkdir(exist_ok=True)
        self._tool(tools / "python", [str(self.base_python)])
        self._tool(tools / "pip", [sys.executable, "-m", "pip", "--disable-pip-version-check"])
        moved = re.sub(r"(?<=[\s=])/(opt|wheels)\b", rf"{self.root}/\1", f" {command}")
        self.ran.append(command)
        subprocess.run(
            ["/bin/sh", "-euc", moved],
            cwd=self.inside(self.folder),
            env={**os.environ, "PATH": f"{tools}:/usr/bin:/bin", "PYTHONPATH": ""},
            check=True,
        )

    @staticmethod
    def _tool(path: Path, words: list[str]) -> None:
        path.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in words) + ' "$@"\n')
        path.chmod(0o755)


def words(exec_form: str) -> list[str]:
    """Of an ENTRYPOINT or CMD; a shell form is no JSON, and would not get the signals."""
    found: list[str] = json.loads(exec_form)
    return found
