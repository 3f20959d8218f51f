"""docs/messages.md is followed block by block, with a real worker on a real database."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from deploy.page import EVENTUALLY, KEEP, Block, blocks
from docs.billing import billing_api

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "messages.md"
BLOCKS = blocks(PAGE)
PATIENCE_SECONDS = 20.0


@dataclass
class Follower:
    """Somebody in an empty folder who does what the page says."""

    folder: Path
    environ: Mapping[str, str]
    kept: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def follow(self, block: Block, shown: Block | None) -> None:
        if block.note.startswith("functions/"):
            path = self.folder / block.note
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        elif block.note == KEEP:
            command = ["bash", "-euc", f"exec {block.text}"]
            self.kept.append(subprocess.Popen(command, cwd=self.folder, env=self.environ))
        elif block.language == "sql":
            with psycopg.connect(self.environ["FAIRLEASE_DATABASE_URL"]) as connection:
                connection.execute(block.text.encode())
        else:
            self._run(block, shown)

    def _run(self, block: Block, shown: Block | None) -> None:
        program = {"sh": ["bash", "-euc"], "python": [sys.executable, "-c"]}[block.language]
        patience = time.monotonic() + (PATIENCE_SECONDS if block.note == EVENTUALLY else 0)
        while True:
            ended = subprocess.run(
                [*program, block.text],
                cwd=self.folder,
                env=self.environ,
                capture_output=True,
                text=True,
                check=False,
            )
            assert ended.returncode == 0, f"line {block.line}: {ended.stderr}"
            if shown is None or shown.matches(ended.stdout):
                return
            assert time.monotonic() < patience, f"line {block.line}:\n{ended.stdout}"

    def leave(self) -> None:
        for process in self.kept:
            process.send_signal(signal.SIGTERM)
        for process in self.kept:
            assert process.wait(PATIENCE_SECONDS) == 0


@pytest.fixture
def follower(tmp_path: Path, database: str) -> Iterator[Follower]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FAIRLEASE_", "SUPABASE_"))}
    with billing_api() as api, contextlib.ExitStack() as ending:
        made = Follower(
            tmp_path,
            {
                **kept,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "FAIRLEASE_DATABASE_URL": database,
                "BILLING_API_URL": api,
            },
        )
        ending.callback(made.leave)
        yield made


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is missing")
def test_everything_that_the_page_says_happens(follower: Follower) -> None:
    followed = 0
    for block, after in zip(BLOCKS, [*BLOCKS[1:], None], strict=True):
        if block.language not in {"text", "json"}:
            shown = after if after is not None and after.language == "text" else None
            follower.follow(block, shown)
            followed += 1
    assert followed > 15


@pytest.mark.parametrize(
    ("path", "name"), sorted(set(re.findall(r"`(tests/[\w/.]+)::(\w+)`", PAGE.read_text())))
)
def test_a_test_that_the_page_names_is_there(path: str, name: str) -> None:
    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE)


@pytest.mark.parametrize("link", re.findall(r"\]\((?!https:)([^)#]+)\)", PAGE.read_text()))
def test_a_link_leads_to_a_file(link: str) -> None:
    assert (PAGE.parent / link).exists()


def test_no_row_of_the_table_is_without_a_test() -> None:
    rows = PAGE.read_text().split("| input | answer | test |")[1].splitlines()[2:]
    for row in filter(None, rows):
        assert re.search(r"`tests/[\w/.]+::\w+`|the same", row.split("|")[3]), row
