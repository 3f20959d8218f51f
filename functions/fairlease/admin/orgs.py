"""Orgs as an operator sees them: what waits and runs, what limits them, and setting that."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fairlease.admin.operating import named_org, operate
from fairlease.errors import InvalidInput

# Messages of one org that are counted in one queue.
MOST_COUNTED = 100_000
_LIST = """
with clock as materialized (select fairlease.now_() as now),
measured as (
  select m.org, sum(m.ready)::bigint as ready, sum(m.running)::bigint as running,
    sum(m.delayed)::bigint as delayed, min(m.oldest_due_at) as oldest_due_at
  from clock, fairlease.queues q
  cross join lateral fairlease.measure_orgs(q, %(most)s, (select now from clock)) m
  where (%(queue)s::text is null or q.queue = %(queue)s)
    and to_regclass(format('pgmq.%%I', q.table_name)) is not null
  group by m.org
),
seated as (
  select s.org, count(*) as slots from fairlease.seats s, clock
  where s.expires_at > clock.now group by s.org
),
named as (
  select m.org from measured m union select l.org from fairlease.org_limits l
  union select s.org from seated s
  union select c.org from fairlease.circuits c where c.open_until is not null
)
select n.org, coalesce(m.ready, 0) as ready, coalesce(m.running, 0) as running,
  coalesce(m.delayed, 0) as delayed,
  greatest(0, extract(epoch from clock.now - m.oldest_due_at))::float8 as oldest_age_seconds,
  coalesce(s.slots, 0) as slots, l.max_per_org as slots_limit,
  l.starts_per_minute::float8 as starts_per_minute, l.burst, coalesce(l.paused, false) as paused,
  case when c.open_until is null then 'closed' when c.open_until > clock.now then 'open'
    else 'half open' end as circuit,
  c.open_until, l.note
from clock, named n
left join measured m on m.org = n.org
left join seated s on s.org = n.org
left join fairlease.org_limits l on l.org = n.org
left join fairlease.circuits c on c.org = n.org
order by coalesce(m.ready, 0) desc, n.org
"""
_SET = """
insert into fairlease.org_limits as l (org, max_per_org, starts_per_minute, burst, note)
values (%(org)s, %(slots)s, %(per_minute)s, coalesce(%(burst)s, 1), %(note)s)
on conflict (org) do update set
  max_per_org = case when %(no_slots)s then null
    else coalesce(excluded.max_per_org, l.max_per_org) end,
  starts_per_minute = case when %(no_per_minute)s then null
    else coalesce(excluded.starts_per_minute, l.starts_per_minute) end,
  burst = coalesce(%(burst)s, l.burst),
  note = coalesce(excluded.note, l.note)
returning l.org, l.max_per_org as slots_limit, l.starts_per_minute::float8 as starts_per_minute,
  l.burst, l.paused, l.note
"""
_PAUSE = """
insert into fairlease.org_limits as l (org, paused, note) values (%(org)s, %(paused)s, %(note)s)
on conflict (org) do update set paused = excluded.paused, note = coalesce(excluded.note, l.note)
where l.paused is distinct from excluded.paused
returning l.org
"""


@dataclass(frozen=True)
class OrgLimits:
    """None leaves what stands. `slots` replaces the workers' own limit and may be above it.

    `no_slots` and `no_per_minute` take a limit away.
    """

    slots: int | None = None
    per_minute: float | None = None
    burst: int | None = None
    note: str | None = None
    no_slots: bool = False
    no_per_minute: bool = False

    def check(self) -> None:
        """Raises InvalidInput for nothing at all, and for a limit both given and taken away."""
        if self == OrgLimits():
            raise InvalidInput("no limit given: name one, such as --slots 2 or --per-minute 600")
        if self.no_slots and self.slots is not None:
            raise InvalidInput("--slots and --no-slots exclude each other: give one")
        if self.no_per_minute and self.per_minute is not None:
            raise InvalidInput("--per-minute and --no-per-minute exclude each other: give one")


def list_all(url: str, queue: str | None = None) -> list[dict[str, Any]]:
    """Every org that has messages, slots, limits or an open circuit; most messages due first."""
    with operate(url) as session:
        if queue is not None:
            session.queue(queue)
        return session.rows(_LIST, queue=queue, most=MOST_COUNTED)


def limit(url: str, org: str, limits: OrgLimits) -> dict[str, Any]:
    """What is in force afterwards. No work is stopped: fewer slots are reached as they end."""
    limits.check()
    with operate(url) as session:
        [row] = session.rows(_SET, org=named_org(org), **asdict(limits))
    return row


def pause(url: str, org: str, *, paused: bool, note: str | None = None) -> bool:
    """False if it was so already. What runs goes on; messages stay where they are."""
    with operate(url) as session:
        if not paused and not session.value(
            "select paused from fairlease.org_limits where org = fairlease.fold_org(%(org)s)",
            org=named_org(org),
        ):
            return False
        return bool(session.rows(_PAUSE, org=named_org(org), paused=paused, note=note))
