"""Every function folder has its shim and its place in config.toml; the shims are clean Deno."""

from __future__ import annotations

import tomllib

import pytest

from fairlease.admin.shims import files
from fairlease.host.functions import discover
from fairlease.resources import functions_folder
from shims.deno import FUNCTIONS, MISSING, SUPABASE, find_deno, run_deno

CONFIG = tomllib.loads((SUPABASE / "config.toml").read_text())
BUNDLED = set(discover([functions_folder()]))
needs_deno = pytest.mark.skipif(find_deno() is None, reason=MISSING)


def test_every_function_has_a_shim_and_every_shim_a_function() -> None:
    assert {file.parent.name for file in FUNCTIONS.glob("*/index.ts")} == BUNDLED


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_a_shim_is_what_fairlease_init_writes(name: str) -> None:
    assert (FUNCTIONS / name / "index.ts").read_text() == files([name])[
        f"functions/{name}/index.ts"
    ]


def test_the_config_asks_no_jwt_of_exactly_these_functions() -> None:
    assert CONFIG["functions"] == {name: {"verify_jwt": False} for name in BUNDLED}


def test_the_config_exposes_the_schema_of_queues() -> None:
    assert "pgmq_public" in CONFIG["api"]["schemas"]


@needs_deno
@pytest.mark.parametrize("check", [("fmt", "--check", "--line-width", "100"), ("lint",)])
def test_the_shims_are_formatted_and_free_of_lint(check: tuple[str, ...]) -> None:
    done = run_deno(*check, FUNCTIONS)
    assert done.returncode == 0, done.stderr


@needs_deno
def test_the_types_of_the_shims_fit() -> None:
    done = run_deno("check", *FUNCTIONS.glob("*/index.ts"))
    assert done.returncode == 0, done.stderr
