"""What forwards pokes on Supabase: a file for each function, on one that they share."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from fairlease import resources

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHARED = "poke.ts"
_SCHEMA = "pgmq_public"
_WHY = "# Their callers have no JWT: they show EDGE_FUNCTION_SECRET, which the function checks."


def files(functions: Sequence[str]) -> dict[str, str]:
    """Texts by their path below a project's `supabase`."""
    shared = (resources.shims_folder() / _SHARED).read_text(encoding="utf-8")
    own = {f"functions/{name}/index.ts": _shim(name) for name in functions}
    return {f"functions/_shared/{_SHARED}": shared, **own}


def _shim(function: str) -> str:
    return (
        f'import {{ forwardPokes }} from "../_shared/{_SHARED}";\n\n'
        f'Deno.serve(forwardPokes("{function}"));\n'
    )


def configured(text: str, functions: Sequence[str]) -> tuple[str, list[str]]:
    """A `config.toml` that asks no JWT of these functions, and what a person has to change in it.

    What it says of a function already stays. Raises ValueError where it is no TOML, or has its
    functions in a form that nothing can be added to.
    """
    before = tomllib.loads(text)
    known = _tables(before.get("functions", {}))
    added = [name for name in functions if name not in known]
    if added:
        tables = [f"[functions.{name}]\nverify_jwt = false\n" for name in added]
        text = "\n".join([f"{text.rstrip()}\n", f"{_WHY}\n{tables[0]}", *tables[1:]])
        tomllib.loads(text)
    remarks = [
        f"give [functions.{name}] verify_jwt = false; callers have no JWT"
        for name in functions
        if name in known and known[name].get("verify_jwt", True)
    ]
    if _SCHEMA not in before.get("api", {}).get("schemas", [_SCHEMA]):
        remarks.append(f'add "{_SCHEMA}" to schemas of [api]')
    return text, remarks


def _tables(functions: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(functions, dict) or not all(isinstance(x, dict) for x in functions.values()):
        raise ValueError("[functions] has something else than a table for each function")
    return functions
