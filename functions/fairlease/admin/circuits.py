"""Circuits as an operator sees them: listed, opened, closed."""

from __future__ import annotations

from typing import Any

from fairlease.admin.operating import named_org, operate
from fairlease.errors import InvalidInput

_LIST = """
select c.org,
  case when c.open_until is null then 'closed' when c.open_until > n.now then 'open'
    else 'half open' end as state,
  greatest(0, ceil(extract(epoch from c.open_until - n.now)))::int as seconds_left,
  c.trips, c.reason, c.opened_at, c.open_until, c.closed_at,
  case when c.open_until <= n.now then c.probe_queue end as probe_queue,
  case when c.open_until <= n.now then c.probe_id end as probe_msg_id
from fairlease.circuits c, (select fairlease.now_() as now) n
where %(closed)s or c.open_until is not null
order by c.open_until desc nulls last, c.org
"""


def list_all(url: str, *, closed: bool = False) -> list[dict[str, Any]]:
    """Those that hold messages back; with `closed`, those of the last day besides."""
    with operate(url) as session:
        return session.rows(_LIST, closed=closed)


def open_(url: str, org: str, duration: str, reason: str | None = None) -> dict[str, Any]:
    """Keep an org out of claims for an interval such as `15 minutes`; what runs goes on."""
    values = {"org": named_org(org), "duration": duration, "reason": reason}
    with operate(url) as session:
        if not session.value("select %(duration)s::interval > '0'", duration=duration):
            raise InvalidInput(f"--for {duration!r} is no time ahead: give one such as 15 minutes")
        session.rows(
            "select fairlease.open_circuit(%(org)s, %(duration)s::interval, %(reason)s)", **values
        )
        [opened] = session.rows(
            "select c.org, c.open_until from fairlease.circuits c "
            "where c.org = fairlease.fold_org(%(org)s)",
            org=org,
        )
    return opened


def close(url: str, org: str) -> bool:
    """Let an org run again; False if its circuit was not open."""
    with operate(url) as session:
        return bool(session.value("select fairlease.close_circuit(%(org)s)", org=named_org(org)))
