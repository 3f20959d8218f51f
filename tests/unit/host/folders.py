"""Writes function folders for the tests of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TASK = 'name = "{name}"\nkind = "task"\n'
DRAIN = 'name = "{name}"\nkind = "drain"\nqueues = ["a", "b"]\n'
HANDLERS = """
from pydantic import BaseModel
from fairlease import Context, Worker

worker = Worker()

class Args(BaseModel):
    x: int

@worker.handler("m")
async def m(args: Args, ctx: Context) -> None: ...
"""
RUN = "async def run(ctx):\n    return None\n"


def write_function(
    root: Path, name: str, toml: str = TASK, *, task: str | None = RUN, handlers: str | None = None
) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "function.toml").write_text(toml.replace("{name}", name))
    for file, text in (("task.py", task), ("handlers.py", handlers)):
        if text is not None:
            (folder / file).write_text(text)
    return folder
