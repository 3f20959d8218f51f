"""Slots as an operator sees them: who holds one, and taking one away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlease.admin.operating import operate

if TYPE_CHECKING:
    from collections.abc import Sequence

_LIST = """
select s.seat, s.holder, s.queue, s.org, s.expires_at > n.now as live,
  ceil(extract(epoch from s.expires_at - n.now))::int as expires_in_seconds,
  floor(extract(epoch from n.now - s.taken_at))::int as held_seconds, s.claims
from fairlease.seats s, (select fairlease.now_() as now) n
where s.holder is not null
  and (%(queue)s::text is null or s.queue = %(queue)s)
  and (%(org)s::text is null or s.org = fairlease.fold_org(%(org)s))
order by s.seat
"""
_LOCK = """
select s.seat, s.holder, s.queue, s.org from fairlease.seats s
where s.holder = any (%(holders)s) order by s.seat for update
"""


def list_all(url: str, queue: str | None = None, org: str | None = None) -> list[dict[str, Any]]:
    """A lapsed one counts for nothing and goes by itself; it is listed as not live."""
    with operate(url) as session:
        if queue is not None:
            session.queue(queue)
        return session.rows(_LIST, queue=queue, org=org)


def release(url: str, holders: Sequence[str]) -> list[dict[str, Any]]:
    """Free the slots of these holders; what is not there any more is left out of the answer.

    A holder that lives loses its lease at its next call: it claims nothing more under that name,
    and what it runs goes on beside whoever takes the slot.
    """
    with operate(url) as session, session.connection.transaction():
        found = session.rows(_LOCK, holders=list(holders))
        for slot in found:
            session.rows(
                "select fairlease.vacate(%(seat)s, 'released', fairlease.now_())", seat=slot["seat"]
            )
        return found
