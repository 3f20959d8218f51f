"""Whether the functions that workers call, and those that these call, are all still there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fairlease import resources
from fairlease.admin import migration_files
from fairlease.admin import migration_history as history
from fairlease.admin.doctor.checks import Check, State

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psycopg

    from fairlease.admin.migration_files import Migration

#: What a worker calls in `pgmq_public`, standard wrappers aside.
RPCS = frozenset(
    {
        "claim_org_slot_and_read",
        "settle_and_claim",
        "heartbeat_org_slot",
        "renew_org_slot",
        "release_org_slot",
        "send_messages",
        "once",
        "queue_stats",
        "maintain_queues",
    }
)
_CHANGED = re.compile(
    r"^\s*(create|drop)\s+(?:or\s+replace\s+)?function\s+(?:if\s+exists\s+)?"
    r"(fairlease|pgmq_public)\.(\w+)",
    re.IGNORECASE | re.MULTILINE,
)
_FOUND = """
select n.nspname::text, p.proname::text, count(*)
from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where n.nspname in ('fairlease', 'pgmq_public')
group by 1, 2
"""


def check_functions(session: psycopg.Connection) -> Check:
    """An upgrade of pgmq, or a hand, may have dropped some without an error."""
    found = {(schema, name): count for schema, name, count in session.execute(_FOUND).fetchall()}
    known = history.read(session)
    files = migration_files.read_folder(resources.migrations_folder())
    expected = _made_by(file for file in files if known.has(file))
    missing = sorted(".".join(name) for name in expected - set(found))
    twice = sorted(name for (_, name), count in found.items() if name in RPCS and count > 1)
    facts = {"missing": missing, "overloaded": twice}
    if missing:
        says = f"functions went missing: {', '.join(missing[:10])}"
        remedy = "apply the migration files that create them again, with psql"
        return Check("functions", State.PROBLEM, says, remedy, facts)
    if twice:
        says = f"more than one function of a name: {', '.join(twice)}; older calls fail (PGRST203)"
        remedy = "drop the one that no migration of fairlease made"
        return Check("functions", State.PROBLEM, says, remedy, facts)
    return Check("functions", State.OK, "every function is there", facts=facts)


def _made_by(migrations: Iterable[Migration]) -> set[tuple[str, str]]:
    """What these files make and no later one of them drops."""
    expected: set[tuple[str, str]] = set()
    for migration in migrations:
        for verb, schema, name in _CHANGED.findall(migration.statements):
            change = expected.add if verb.lower() == "create" else expected.discard
            change((schema.lower(), name.lower()))
    return expected
