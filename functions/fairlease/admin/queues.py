"""Queues as an operator sees them: made, attached, listed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from fairlease.admin.connection import connect, one_line
from fairlease.errors import CallRefused, ConfigurationError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class QueuePolicy:
    """None leaves what an earlier attach decided, or the default.

    `retention` is a Postgres interval such as `30 days`; `resolver` names a function of the
    application, `schema.function(jsonb, jsonb)`, that tells a message's org.
    """

    on_success: str | None = None
    max_attempts: int | None = None
    retention: str | None = None
    unique_keys: bool | None = None
    resolver: str | None = None
    resolver_overrides: bool | None = None


_DEFAULT = QueuePolicy()
_LIST = """
select m.queue_name as queue, q.id is not null as attached, m.is_partitioned, m.is_unlogged,
  coalesce((to_jsonb(q) ->> 'paused')::boolean, false) as paused,
  q.on_success, q.max_attempts, q.retention::text as retention, q.unique_keys,
  q.resolver::text as resolver, m.created_at::text as created_at
from pgmq.meta m left join fairlease.queues q on q.queue = m.queue_name
order by m.queue_name
"""
_ATTACH = """
select fairlease.attach_queue(
  %(queue)s, on_success => %(on_success)s, max_attempts => %(max_attempts)s,
  retention => %(retention)s::interval, unique_keys => %(unique_keys)s,
  resolver => %(resolver)s::regprocedure, resolver_overrides => %(resolver_overrides)s
)
"""


def create(url: str, queue: str, policy: QueuePolicy = _DEFAULT) -> dict[str, Any]:
    """Make a queue and attach it. Raises InvalidInput where it exists."""
    with connect(url) as session:
        if _exists(session, queue):
            raise InvalidInput(f"queue {queue!r} exists already: `fairlease queue attach` it")
        return _attach(session, queue, policy)


def attach(url: str, queue: str, policy: QueuePolicy = _DEFAULT) -> dict[str, Any]:
    """Attach a queue that exists; again, to change its policy. Raises InvalidInput for no queue."""
    with connect(url) as session:
        if not _exists(session, queue):
            raise InvalidInput(f"there is no queue {queue!r}: `fairlease queue create` it")
        return _attach(session, queue, policy)


def ensure(url: str, queues: Iterable[str]) -> None:
    """Make and attach those that are missing; harmless for the others."""
    with connect(url) as session:
        for queue in queues:
            _attach(session, queue, _DEFAULT)


def list_all(url: str) -> list[dict[str, Any]]:
    """Every pgmq queue, attached or not; what is not attached has no policy."""
    with connect(url) as session:
        _require_schema(session)
        return session.cursor(row_factory=dict_row).execute(_LIST).fetchall()


def _attach(session: psycopg.Connection, queue: str, policy: QueuePolicy) -> dict[str, Any]:
    """The id in the registry and the warnings. Raises CallRefused with the database's reason."""
    _require_schema(session)
    try:
        row = session.execute(_ATTACH, {"queue": queue, **asdict(policy)}).fetchone()
    except (psycopg.errors.RaiseException, psycopg.errors.CheckViolation) as error:
        raise CallRefused(one_line(error), code=error.sqlstate or "") from error
    except (psycopg.DataError, psycopg.ProgrammingError) as error:
        raise InvalidInput(f"queue {queue!r}: {one_line(error)}") from error
    answer = row[0] if row else {}
    return dict(json.loads(answer) if isinstance(answer, str) else answer)


def _exists(session: psycopg.Connection, queue: str) -> bool:
    _require_schema(session)
    found = session.execute("select from pgmq.meta where queue_name = %s", (queue,)).fetchone()
    return found is not None


def _require_schema(session: psycopg.Connection) -> None:
    row = session.execute("select to_regclass('fairlease.queues') is null").fetchone()
    if row is None or row[0]:
        raise ConfigurationError(
            "this database has no fairlease schema: run `fairlease migrate` first"
        )
