"""What a storm is about: queues, orgs, caps, and the tables that keep its accounts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg

QUEUES = ("squall", "gust")
GLOBAL_CAP = 24
LOWER_CAP = 16
MAX_PER_ORG = 3
# The first of these has half of all messages; some have caps of their own, one is rate limited.
ORGS = tuple(f"org{number:02}" for number in range(12))
OWN_CAPS = {"org01": 1, "org02": 5}
RATED, STARTS_PER_MINUTE, BURST = "org03", 120, 3

# `sent` is written in the transaction that sends, so the books must balance in every snapshot.
ACCOUNTS = """
create schema storm;
create table storm.sent (queue text, msg_id bigint, primary key (queue, msg_id));
create table storm.clock (ahead interval not null);
insert into storm.clock values ('0');
create or replace function fairlease.now_() returns timestamptz
language sql volatile parallel safe set search_path = ''
as $$ select pg_catalog.clock_timestamp() + c.ahead from storm.clock c $$;
"""


@dataclass(frozen=True)
class Caps:
    """What the checker holds the fleet to."""

    fleet: int
    default_per_org: int
    per_org: dict[str, int]

    def of(self, org: str) -> int:
        return self.per_org.get(org, self.default_per_org)


CAPS = Caps(GLOBAL_CAP, MAX_PER_ORG, OWN_CAPS)


def set_up(connection: psycopg.Connection) -> None:
    connection.execute(ACCOUNTS)
    for queue in QUEUES:
        connection.execute("select fairlease.attach_queue(%s)", [queue])
    for org, cap in OWN_CAPS.items():
        connection.execute(
            "insert into fairlease.org_limits (org, max_per_org) values (%s, %s)", [org, cap]
        )
    connection.execute(
        "insert into fairlease.org_limits (org, starts_per_minute, burst) values (%s, %s, %s)",
        [RATED, STARTS_PER_MINUTE, BURST],
    )
