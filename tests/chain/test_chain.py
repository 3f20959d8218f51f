"""`make chain` tells a broken chain from a whole one, by its exit code and its words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shims.deno import MISSING as NO_DENO
from shims.deno import find_deno
from stack.pg_cron import MISSING as NO_PG_CRON
from stack.pg_cron import is_installed

TESTS = Path(__file__).parents[1]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_deno() is None, reason=NO_DENO),
    pytest.mark.skipif(not is_installed(), reason=NO_PG_CRON),
]


def chain(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "chain", *options]
    return subprocess.run(
        command, cwd=TESTS, capture_output=True, text=True, timeout=250, check=False
    )


@pytest.mark.timeout(300)
def test_a_wrong_secret_in_vault_breaks_it_at_the_shim() -> None:
    done = chain("--wrong-secret")
    assert done.returncode == 1
    assert "pg_cron has ticked" in done.stdout
    assert "BROKEN: the poke was refused: 401" in done.stderr
    assert "is done" not in done.stdout


@pytest.mark.timeout(300)
def test_a_whole_chain_shows_the_message_done() -> None:
    done = chain()
    assert done.returncode == 0, done.stderr
    lines = [line.split(maxsplit=2)[2] for line in done.stdout.splitlines()]
    assert lines[-2:] == [
        "the handler said once: hello world of acme",
        "done: cron -> Deno shim -> host -> drain",
    ]
