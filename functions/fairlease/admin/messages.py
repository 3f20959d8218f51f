"""Messages as an operator sees them: in which state, and where one went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg import sql

from fairlease.admin.operating import operate
from fairlease.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping


# `m` is the queue's table; what it has not is null.
_LIVE = sql.SQL("""
select m.msg_id, {org} as org, m.message ->> 'method' as method, m.message ->> 'key' as key,
  case when m.vt <= n.now then 'ready'
    when m.read_ct = 0 then 'delayed'
    when s.closed_read_ct is not distinct from m.read_ct then 'retrying'
    else 'running' end as state,
  m.read_ct - coalesce(s.uncounted, 0) as attempts, coalesce(s.begun_count, 0) as crashes,
  m.enqueued_at, m.vt as visible_at, {read_at} as last_read_at, s.last_error,
  m.message, {headers} as headers
from pgmq.{table} m
cross join (select fairlease.now_() as now) n
left join lateral fairlease.state_of(%(queue)s, m.msg_id, m.enqueued_at) s on true
""")
_LISTED = sql.SQL("""
select l.msg_id, l.org, l.method, l.key, l.state, l.attempts, l.enqueued_at, l.visible_at
from ({live} where {org_is}) l
where (%(method)s::text is null or l.method = %(method)s)
  and (%(state)s::text is null or l.state = %(state)s)
order by l.msg_id limit %(limit)s
""")
_ARCHIVED = sql.SQL("""
select m.msg_id, {org} as org, m.message ->> 'method' as method, m.message ->> 'key' as key,
  m.read_ct, m.enqueued_at, m.archived_at, m.message, {headers} as headers
from pgmq.{archive} m where m.msg_id = %(msg_id)s
""")
_DEAD = """
select d.id as dead_letter, d.msg_id, d.org, d.message ->> 'method' as method,
  d.message ->> 'key' as key, d.attempts, d.reason, d.enqueued_at, d.died_at, d.message, d.headers
from fairlease.dead_letters d where d.queue = %(queue)s and d.msg_id = %(msg_id)s order by d.id
"""
_PAYLOAD = ("message", "headers")


def list_some(
    url: str,
    queue: str,
    *,
    org: str | None = None,
    method: str | None = None,
    state: str | None = None,
    limit: int = 50,
) -> list[dict[str, Any]]:
    """Those in the queue, the oldest first; no payload.

    `state` is ready, running, delayed (never delivered) or retrying.
    """
    with operate(url) as session:
        names = _names(session.queue(queue))
        org_is: sql.Composable = sql.SQL("true")
        if org is not None:
            org_is = sql.SQL("{org} = fairlease.fold_org(%(org)s)").format(**names)
        query = _LISTED.format(live=_LIVE.format(**names), org_is=org_is)
        return session.rows(query, queue=queue, org=org, method=method, state=state, limit=limit)


def show(url: str, queue: str, msg_id: int, *, payload: bool = False) -> list[dict[str, Any]]:
    """Every place that holds a message of this id: `where` is queue, archive or dead_letters.

    After a restore an id can come again, so there may be several. Raises InvalidInput for none.
    """
    values = {"queue": queue, "msg_id": msg_id}
    with operate(url) as session:
        names = _names(session.queue(queue))
        live = sql.SQL("{live} where m.msg_id = %(msg_id)s").format(live=_LIVE.format(**names))
        found = [
            *({"where": "queue", **row} for row in session.rows(live, **values)),
            *(
                {"where": "archive", **row}
                for row in session.rows(_ARCHIVED.format(**names), **values)
            ),
            *({"where": "dead_letters", **row} for row in session.rows(_DEAD, **values)),
        ]
    if not found:
        raise InvalidInput(
            f"queue {queue!r} has no message {msg_id}, nor have its archive and dead letters: "
            "it was deleted when it was done, purged, or never sent"
        )
    return [
        {name: value for name, value in row.items() if payload or name not in _PAYLOAD}
        for row in found
    ]


def _names(queue: Mapping[str, Any]) -> dict[str, sql.Composable]:
    headers = "m.headers" if queue["has_headers"] else "null::jsonb"
    read_at = "m.last_read_at" if queue["has_last_read_at"] else "null::timestamptz"
    return {
        "table": sql.Identifier(queue["table_name"]),
        "archive": sql.Identifier(queue["archive_name"]),
        "headers": sql.SQL(headers),
        "read_at": sql.SQL(read_at),
        "org": sql.SQL(f'(fairlease.org_of(m.message, {headers}) collate "C")'),
    }
