"""The backlogs that claims are measured on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg

# One statement a batch of rows: what i is comes from generate_series.
_INSERT = """
insert into pgmq.q_{queue} (vt, message, headers)
select clock_timestamp() + {visible}, jsonb_build_object('method', 'm', 'args',
  jsonb_build_object('i', i)), jsonb_build_object('x-org', {org})
from generate_series(1, {rows}) i
"""
_PAST = "interval '-1 s'"
_FUTURE = "interval '1 day'"


@dataclass(frozen=True)
class Shape:
    """A named backlog; `parts` are (rows, SQL of the org, SQL of the visibility)."""

    name: str
    parts: tuple[tuple[int, str, str], ...]
    depth: int = 0
    orgs: int = 0
    after: tuple[str, ...] = ()

    @property
    def queue(self) -> str:
        return "".join(c if c.isalnum() else "_" for c in self.name).lower()

    def build(self, session: psycopg.Connection) -> None:
        session.execute("select fairlease.attach_queue(%s)", (self.queue,))
        for rows, org, visible in self.parts:
            session.execute(_INSERT.format(queue=self.queue, rows=rows, org=org, visible=visible))
        session.execute(f"vacuum (analyze) pgmq.q_{self.queue}")
        for statement in self.after:
            session.execute(statement.format(queue=self.queue))


def grid(depths: list[int], org_counts: list[int]) -> list[Shape]:
    """Every depth with every number of orgs that it can hold."""
    return [
        Shape(
            f"{depth} of {orgs}",
            ((depth, f"'org' || lpad((i % {orgs})::text, 5, '0')", _PAST),),
            depth=depth,
            orgs=orgs,
        )
        for depth in depths
        for orgs in org_counts
        if depth == 0 or orgs <= depth
    ][:None]


def hard(scale: int) -> list[Shape]:
    """`scale` is the number of orgs, and a hundredth of the largest backlog."""
    many = "'org' || lpad(i::text, 6, '0')"
    return [
        Shape(
            f"{scale} orgs wait, one has work",
            ((scale, many, _FUTURE), (100, "'one'", _PAST)),
        ),
        Shape(
            "one org has 99.9 %",
            ((scale * 10, "'whale'", _PAST), (scale // 100, many, _PAST)),
        ),
        Shape(
            f"{scale * 10} dead tuples",
            ((scale * 10, many, _PAST), (1000, "'live' || i % 10", _PAST)),
            after=("delete from pgmq.q_{queue} where msg_id <= " + str(scale * 10),),
        ),
        Shape(
            "work at the far end",
            ((scale * 10, "'early' || i % 1000", _FUTURE), (1000, "'late' || i % 10", _PAST)),
        ),
    ]


def paused(scale: int) -> Shape:
    many = "'org' || lpad(i::text, 6, '0')"
    return Shape(
        f"{scale} orgs have work, all but one paused",
        ((scale, many, _PAST),),
        after=(
            f"insert into fairlease.org_limits (org, paused) select {many}, true "  # noqa: ISC004
            f"from generate_series(1, {scale - 1}) i",
            "analyze fairlease.org_limits",
        ),
    )
