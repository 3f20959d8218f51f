"""The database, looked at directly: its versions, its schema, its clock, its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlease.admin import migrate, pgmq_version
from fairlease.admin.connection import connect
from fairlease.admin.doctor.checks import Check, State
from fairlease.admin.doctor.functions import check_functions
from fairlease.admin.doctor.grants import check_grants
from fairlease.errors import ConfigurationError, FairleaseError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psycopg

    from fairlease.clock import Clock
    from fairlease.settings import Knobs

_OLDEST_SERVER, _NEWEST_SERVER = 15, 18
# Leases are judged by the database's clock alone; beyond this, logs and dates mislead people.
_SKEW_SECONDS = 5.0
_LISTED = 10
_WITHOUT_ARCHIVE = """
select q.queue from fairlease.queues q
where q.on_success = 'archive'
  and pg_catalog.to_regclass(format('pgmq.%I', q.archive_name)) is null
  and pg_catalog.to_regclass(format('pgmq.%I', q.table_name)) is not null
order by q.queue
"""


def examine(url: str, clock: Clock, knobs: Knobs, queues: Iterable[str]) -> list[Check]:
    """Every finding about the database behind `url`; one that cannot be reached is a finding."""
    try:
        with connect(url) as session:
            checks = [_connection(session), _clock(session, clock)]
            found = _pgmq(session)
            checks.append(found)
            if found.state is not State.PROBLEM:
                checks += _schema(session, url, knobs, sorted(set(queues)))
            return checks
    except FairleaseError as error:
        remedy = "check FAIRLEASE_DATABASE_URL, and that the database runs"
        return [Check("connection", State.PROBLEM, str(error), remedy)]


def _connection(session: psycopg.Connection) -> Check:
    version, role, name = _row(
        session,
        "select current_setting('server_version'), current_user::text, current_database()::text",
    )
    major = session.info.server_version // 10_000
    facts = {"server_version": version, "role": role, "database": name}
    says = f"PostgreSQL {version}, database {name}, as {role}"
    if _OLDEST_SERVER <= major <= _NEWEST_SERVER:
        return Check("connection", State.OK, says, facts=facts)
    remedy = f"use PostgreSQL {_OLDEST_SERVER} to {_NEWEST_SERVER}"
    return Check("connection", State.WARNING, says, remedy, facts)


def _clock(session: psycopg.Connection, clock: Clock) -> Check:
    """Half of the round trip is the error of the measurement."""
    before, sent = clock.monotonic(), clock.now()
    (theirs,) = _row(session, "select clock_timestamp()")
    error_seconds = (clock.monotonic() - before) / 2
    skew = (theirs - sent).total_seconds() - error_seconds
    facts = {"skew_seconds": round(skew, 3), "error_seconds": round(error_seconds, 3)}
    says = f"the database's clock is {skew:+.3f} s from ours (within {error_seconds:.3f} s)"
    if abs(skew) - error_seconds <= _SKEW_SECONDS:
        return Check("clock", State.OK, says, facts=facts)
    return Check("clock", State.WARNING, says, "synchronise the clocks (NTP)", facts)


def _pgmq(session: psycopg.Connection) -> Check:
    try:
        pgmq_version.require(session)
    except ConfigurationError as error:
        return Check("pgmq", State.PROBLEM, str(error), "install or update pgmq")
    row = session.execute("select extversion from pg_extension where extname = 'pgmq'").fetchone()
    version = row[0] if row else None
    says = f"pgmq {version}" if version else "pgmq, installed as SQL without a version"
    return Check("pgmq", State.OK, says, facts={"version": version})


def _schema(session: psycopg.Connection, url: str, knobs: Knobs, queues: list[str]) -> list[Check]:
    report = migrate.check(url)
    facts = {"pending": report.pending, "unknown": report.unknown}
    (installed,) = _row(session, "select to_regclass('fairlease.queues') is not null")
    if not installed:
        says = "this database has no fairlease schema"
        return [Check("schema", State.PROBLEM, says, "run `fairlease migrate`", facts)]
    return [
        _level(report, facts),
        check_functions(session),
        *check_grants(session),
        _queues(session, queues),
        _limits(session, knobs),
    ]


def _level(report: migrate.MigrationReport, facts: dict[str, Any]) -> Check:
    if report.pending:
        says = f"{len(report.pending)} migrations are missing, the first is {report.pending[0]}"
        return Check("schema", State.PROBLEM, says, "run `fairlease migrate`", facts)
    if report.unknown:
        says = f"the database is {len(report.unknown)} migrations ahead of this version"
        return Check("schema", State.WARNING, says, "update this worker when you can", facts)
    return Check("schema", State.OK, "every migration is applied", facts=facts)


def _queues(session: psycopg.Connection, queues: list[str]) -> Check:
    rows = session.execute("select queue from fairlease.queues order by queue").fetchall()
    attached = [row[0] for row in rows]
    missing = [queue for queue in queues if queue not in attached]
    facts = {"attached": attached, "missing": missing}
    if missing:
        remedy = " && ".join(f"fairlease queue attach {queue}" for queue in missing[:_LISTED])
        says = f"functions serve queues that are not attached: {', '.join(missing[:_LISTED])}"
        return Check("queues", State.PROBLEM, says, f"run `{remedy}`", facts)
    without = [row[0] for row in session.execute(_WITHOUT_ARCHIVE).fetchall()]
    if without:
        says = (
            f"the archive of {', '.join(without[:_LISTED])} is missing: what is done is kept in "
            "fairlease.archive_conflicts"
        )
        remedy = " ".join(f"select pgmq.create('{queue}');" for queue in without[:_LISTED])
        return Check("queues", State.WARNING, says, f"run `{remedy}`", facts)
    return Check("queues", State.OK, f"{len(attached)} queues are attached", facts=facts)


def _limits(session: psycopg.Connection, knobs: Knobs) -> Check:
    """An org's own slots replace the knob, so that no knob's check has seen them."""
    rows = session.execute(
        "select org, max_per_org from fairlease.org_limits where max_per_org * %s > %s "
        "order by max_per_org desc, org limit %s",
        (knobs.drain_concurrency, knobs.org_in_flight_ceiling, _LISTED),
    ).fetchall()
    above: dict[str, int] = dict(rows)
    if not above:
        return Check("limits", State.OK, "no org's own slots exceed the in-flight ceiling")
    org, slots = rows[0]
    says = (
        f"org {org!r} may have {slots} slots of {knobs.drain_concurrency} messages each: "
        f"{slots * knobs.drain_concurrency} in flight, above the ceiling of "
        f"{knobs.org_in_flight_ceiling}"
    )
    remedy = "lower its max_per_org in fairlease.org_limits, or raise the ceiling knowingly"
    return Check("limits", State.WARNING, says, remedy, {"above_ceiling": above})


def _row(session: psycopg.Connection, statement: str) -> tuple[Any, ...]:
    row = session.execute(statement.encode()).fetchone()
    assert row is not None  # noqa: S101 - a select without from
    return row
