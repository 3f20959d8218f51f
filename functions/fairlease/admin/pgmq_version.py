"""Whether the database's pgmq is there and recent enough."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fairlease.errors import ConfigurationError

if TYPE_CHECKING:
    import psycopg

OLDEST = (1, 4, 4)
# A pgmq installed as plain SQL has no version; these it must have.
_NEEDED_FUNCTIONS = frozenset(
    {"archive", "create", "delete", "format_table_name", "read", "send", "send_batch", "set_vt"}
)


def require(session: psycopg.Connection) -> None:
    """Raises ConfigurationError, with the remedy, unless pgmq can carry fairlease."""
    row = session.execute("select extversion from pg_extension where extname = 'pgmq'").fetchone()
    if row is not None:
        _require_version(row[0])
        return
    found = session.execute("select to_regclass('pgmq.meta') is not null").fetchone()
    if found is None or not found[0]:
        raise ConfigurationError(
            "this database has no pgmq: run `create extension pgmq` (on Supabase: Integrations, "
            "Queues), or install the SQL of the Python package pgmq where there is no extension"
        )
    rows = session.execute(
        "select distinct proname from pg_proc where pronamespace = 'pgmq'::regnamespace"
    )
    lacking = sorted(_NEEDED_FUNCTIONS - {row[0] for row in rows})
    if lacking:
        raise ConfigurationError(
            f"the pgmq of this database is too old, it lacks {', '.join(lacking)}: "
            f"install {_dotted(OLDEST)} or later"
        )


def _require_version(version: str) -> None:
    parts = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if parts < OLDEST:
        raise ConfigurationError(
            f"pgmq {version} is too old, fairlease needs {_dotted(OLDEST)} or later: "
            "run `alter extension pgmq update`"
        )


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
