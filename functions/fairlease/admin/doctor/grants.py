"""Who may call and read what: workers must, everybody else must not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlease.admin.doctor.checks import Check, State
from fairlease.admin.doctor.functions import RPCS

if TYPE_CHECKING:
    import psycopg

_WORKER = "service_role"
_STRANGERS = ("public", "anon", "authenticated")
_LISTED = 10

_EXECUTE = """
select p.proname::text, p.oid::regprocedure::text, r.role
from pg_catalog.pg_proc p
cross join (
  select 'public' as role
  union all
  select rolname::text from pg_catalog.pg_roles where rolname = any(%(roles)s)
) r
where p.pronamespace = pg_catalog.to_regnamespace('pgmq_public')
  and pg_catalog.has_function_privilege(r.role, p.oid, 'execute')
order by 1, 2, 3
"""
_SCHEMA = """
select r.rolname::text
from pg_catalog.pg_roles r
where r.rolname = any(%(roles)s) and pg_catalog.has_schema_privilege(r.oid, 'fairlease', 'usage')
"""
_TABLES = """
select c.relname::text, r.rolname::text
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
cross join pg_catalog.pg_roles r
where n.nspname = 'pgmq' and c.relkind = 'r' and left(c.relname, 2) in ('q_', 'a_')
  and r.rolname in ('anon', 'authenticated')
  and pg_catalog.has_schema_privilege(r.oid, n.oid, 'usage')
  and pg_catalog.has_table_privilege(r.oid, c.oid, 'select')
  and not c.relrowsecurity
order by 1, 2
"""


def check_grants(session: psycopg.Connection) -> list[Check]:
    """Ours are callable by the worker's role alone; foreign ones are somebody's to decide on."""
    roles = {"roles": [_WORKER, *_STRANGERS]}
    callable_by = session.execute(_EXECUTE, roles).fetchall()
    inside = [row[0] for row in session.execute(_SCHEMA, roles).fetchall()]
    readable = session.execute(_TABLES).fetchall()
    return [_ours(session, callable_by, inside), _foreign(callable_by), _readable(readable)]


def _ours(session: psycopg.Connection, callable_by: list[Any], inside: list[str]) -> Check:
    has_worker = session.execute("select to_regrole(%s) is not null", (_WORKER,)).fetchone()
    worker = {name for name, _, role in callable_by if role == _WORKER}
    strangers = sorted(
        {
            f"{signature} by {role}"
            for name, signature, role in callable_by
            if name in RPCS and role in _STRANGERS
        }
    )
    locked_out = sorted(RPCS - worker) if has_worker and has_worker[0] else []
    facts = {"locked_out": locked_out, "open_to": strangers, "schema_open_to": inside}
    if strangers or inside:
        says = f"open to whoever has the anon key: {', '.join([*strangers, *inside][:_LISTED])}"
        remedy = "revoke all on these from public, anon and authenticated"
        return Check("grants", State.PROBLEM, says, remedy, facts)
    if locked_out:
        says = f"{_WORKER} may not execute {', '.join(locked_out)}"
        remedy = f"grant execute on function pgmq_public.<name> to {_WORKER}"
        return Check("grants", State.PROBLEM, says, remedy, facts)
    return Check("grants", State.OK, f"workers' functions are for {_WORKER} alone", facts=facts)


def _foreign(callable_by: list[Any]) -> Check:
    found = sorted(
        {
            signature
            for name, signature, role in callable_by
            if name not in RPCS and role in _STRANGERS
        }
    )
    facts = {"functions": found}
    if not found:
        return Check("foreign_functions", State.OK, "none is open in pgmq_public", facts=facts)
    says = f"others may execute in pgmq_public: {', '.join(found[:_LISTED])}"
    remedy = "revoke execute from public, anon and authenticated unless clients use queues directly"
    return Check("foreign_functions", State.WARNING, says, remedy, facts)


def _readable(readable: list[Any]) -> Check:
    found = [f"pgmq.{table} by {role}" for table, role in readable]
    facts = {"readable": found}
    if not found:
        return Check("queue_tables", State.OK, "no queue is readable by API roles", facts=facts)
    says = f"messages are readable without row security: {', '.join(found[:_LISTED])}"
    remedy = "enable row level security on the tables, or revoke select"
    return Check("queue_tables", State.WARNING, says, remedy, facts)
