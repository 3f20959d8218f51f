"""Somebody who follows a page, with a project on this machine in the place of a hosted one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import hatchling

from deploy.page import ACCOUNT, EVENTUALLY, KEEP, YOURS, Block
from shims.deno import running_shim

if TYPE_CHECKING:
    import contextlib

    from deploy.front import Front
    from deploy.shell import Service, Shell

FUNCTION = "greetings"
# The next full minute, the poke, the run.
PATIENCE_SECONDS = 100.0


@dataclass
class Reader:
    """`values` are this reader's own; `running` ends what is started here."""

    shell: Shell
    values: dict[str, str]
    front: Front
    running: contextlib.ExitStack
    host: Service | None = None
    ran: list[Block] = field(default_factory=list)
    said: str = ""

    def follow(self, block: Block, shown: Block | None) -> None:
        if block.is_file:
            file = self.shell.folder / block.note
            file.write_text(block.text)
        elif block.note == YOURS:
            self.shell.run("\n".join(self._own(line) for line in block.text.splitlines()))
        elif block.note == KEEP:
            (command,) = block.text.splitlines()
            without = "FAIRLEASE_DATABASE_URL"
            self.host = self.running.enter_context(self.shell.serving(command, without))
        elif block.note == ACCOUNT:
            self._instead(block)
            return
        else:
            self._run(block, shown)
        self.ran.append(block)

    def _own(self, line: str) -> str:
        name = line.removeprefix("export ").partition("=")[0]
        value = self.host.url if name == "FAIRLEASE_HOST_URL" and self.host else self.values[name]
        return f"export {name}='{value}'"

    def _run(self, block: Block, shown: Block | None) -> None:
        end = time.monotonic() + (PATIENCE_SECONDS if block.note == EVENTUALLY else 0)
        while True:
            self.said = self.shell.run(block.text)
            if shown is None or shown.matches(self.said):
                break
            assert time.monotonic() < end, f"line {shown.line} shows\n{shown.text}\n{self.said}"
            time.sleep(1)
        if "pip install" in block.text:
            install_dependencies(self.shell.folder / ".venv")

    def _instead(self, block: Block) -> None:
        if "functions deploy" not in block.text:
            return
        script = self.shell.folder / "supabase" / "functions" / FUNCTION / "index.ts"
        secrets = self.shell.run('echo "$EDGE_FUNCTION_SECRET" "$FAIRLEASE_HOST_URL"').split()
        names = ("EDGE_FUNCTION_SECRET", "FAIRLEASE_HOST_URL")
        shim = running_shim(script, **dict(zip(names, secrets, strict=True)))
        self.front.functions[FUNCTION] = self.running.enter_context(shim).url


def install_dependencies(environment: Path) -> None:
    """Those of this environment, in the place of a download."""
    (site,) = environment.glob("lib/python3*/site-packages")
    for package in Path(hatchling.__file__).parents[1].iterdir():
        target = site / package.name
        ours = package.name.startswith(("fairlease", "_fairlease", "__editable__"))
        if not ours and package.suffix != ".pth" and not target.exists():
            target.symlink_to(package)
