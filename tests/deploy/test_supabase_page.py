"""docs/deploy-supabase.md is followed, block by block, by somebody without an account."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chain.surroundings import project
from deploy.front import front
from deploy.page import ACCOUNT, EVENTUALLY, KINDS, MARK, RUN, YOURS, blocks, commands
from deploy.reader import Reader
from deploy.shell import Shell
from migration.supabase_cli import MISSING as NO_NPM
from migration.supabase_cli import supabase_cli
from shims.deno import MISSING as NO_DENO
from shims.deno import find_deno
from stack.pg_cron import MISSING as NO_PG_CRON
from stack.pg_cron import is_installed

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "deploy-supabase.md"
BLOCKS = blocks(PAGE)
SHELL = [block for block in BLOCKS if block.language == "sh"]
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason=NO_NPM)


def test_every_block_says_what_is_to_be_done_with_it() -> None:
    assert {block.language for block in BLOCKS} == {"", "sh", "text", "toml", "python"}
    assert {block.note for block in SHELL} == KINDS
    for before, block in itertools.pairwise(BLOCKS):
        if block.language == "text":
            assert before.note in {RUN, EVENTUALLY}


def test_what_needs_an_account_is_marked_for_readers_and_is_nothing_else() -> None:
    for block in SHELL:
        assert block.text.startswith(MARK) == (block.note == ACCOUNT), block.line
        words = [" ".join(line[:2]) for line in commands(block.text)]
        if block.note == ACCOUNT:
            alone = re.compile(r"supabase (login|link|secrets|functions)|psql \$FAIRLEASE_\w+")
            assert all(alone.fullmatch(one) for one in words), words
            assert "psql" not in block.text or "create extension" in block.text
        else:
            assert not any(w.startswith("supabase ") for w in words if w[9:] not in {"init", "db"})


def test_a_readers_own_values_are_exports_and_nothing_else() -> None:
    for block in SHELL:
        if block.note == YOURS:
            assert all(line.startswith("export ") for line in block.text.splitlines())


@pytest.mark.parametrize("link", re.findall(r"\]\((?!https:)([^)#]+)\)", PAGE.read_text()))
def test_a_link_leads_to_a_file(link: str) -> None:
    assert (PAGE.parent / link).exists()


@needs_npm
@pytest.mark.slow
def test_the_real_cli_knows_the_commands_that_need_an_account(tmp_path: Path) -> None:
    asked = [c for b in SHELL if b.note == ACCOUNT for c in commands(b.text) if c[0] == "supabase"]
    assert len(asked) >= 4
    for command in asked:
        flags = [word for word in command if word.startswith("--")]
        words = [word for word in command[1:] if re.fullmatch("[a-z]+", word)]
        said = subprocess.run(
            [supabase_cli(), *words, "--help"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        assert f"supabase {' '.join(words)}" in said
        assert all(flag in said for flag in flags), command


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    wheels, folder, state = (tmp_path / name for name in ("wheels", "project", "state"))
    for one in (wheels, folder, state):
        one.mkdir()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with contextlib.ExitStack() as running:
        made = running.enter_context(project(lambda _: None))
        gate = running.enter_context(front(made.supabase_url))
        values = {
            "PROJECT": "abcdefghijklmnopqrst",
            "SUPABASE_URL": gate.url,
            "SUPABASE_SECRET_KEY": made.keys.secret_key,
            "FAIRLEASE_DATABASE_URL": f"{made.database_url}?sslmode=disable",
        }
        environment = {
            "PATH": f"{supabase_cli().parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "PORT": "0",
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_FIND_LINKS": str(wheels),
            "SUPABASE_TELEMETRY_DISABLED": "1",
        }
        yield Reader(Shell(folder, state, environment), values, gate, running)


@needs_npm
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(find_deno() is None, reason=NO_DENO)
@pytest.mark.skipif(not is_installed(), reason=NO_PG_CRON)
@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is missing")
def test_whoever_follows_the_page_sees_the_first_message_done(reader: Reader) -> None:
    to_follow = [block for block in BLOCKS if block.language not in {"", "text"}]
    for block, after in zip(BLOCKS, [*BLOCKS[1:], None], strict=True):
        if block in to_follow:
            shown = after if after is not None and after.language == "text" else None
            reader.follow(block, shown)
    skipped = [block for block in to_follow if block not in reader.ran]
    assert skipped == [block for block in SHELL if block.note == ACCOUNT]
    assert reader.host is not None
    assert reader.host.lines.count("hello world of acme") == 1
    (forgetting,) = re.findall(r"\$\$(delete .*?)\$\$", PAGE.read_text())
    reader.shell.run(f'psql "$FAIRLEASE_DATABASE_URL" -v ON_ERROR_STOP=1 -c "{forgetting}"')
