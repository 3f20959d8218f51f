"""The real Supabase CLI, pinned, installed once beside the virtual environment."""

from __future__ import annotations

import subprocess
from pathlib import Path

MISSING = "npm brings the supabase CLI"
_CLI = "supabase@2.117.0"
_CACHE = Path(__file__).parents[2] / ".venv" / "supabase-cli"


def supabase_cli() -> Path:
    program = _CACHE / "node_modules" / ".bin" / "supabase"
    if not program.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--no-audit", "--no-fund", "--silent", _CLI]
        subprocess.run(install, cwd=_CACHE, check=True, timeout=300)
    return program
