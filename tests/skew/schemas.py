"""Every database of the matrix by its name, and what it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from skew.levels import BEFORE_ANY_CLAIM, LEVELS, NEWEST, attach, drop, level_before, reach, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Change = Callable[[psycopg.Connection], object]

SETTLE, HEARTBEAT, PIN = "settle_and_claim", "heartbeat_org_slot", "pin_org"
_SINCE = {SETTLE: "20261201002100", HEARTBEAT: "20261201002200"}


@dataclass(frozen=True)
class Schema:
    """`lacks` is what a worker of this version then does without.

    `version` is what is migrated to before `change`; `seen_before` the version that a stale cache
    still shows, and `older` what it had of an older release instead.
    """

    version: str
    lacks: frozenset[str]
    change: Change = lambda _session: None
    seen_before: str = NEWEST
    slots: str = "fairlease.seats"
    older: Change | None = None

    def begin(self, url: str) -> None:
        """What a stale cache has seen."""
        with psycopg.connect(url, autocommit=True) as session:
            session.execute(text("supabase_wrappers.sql"))
        if self.seen_before > BEFORE_ANY_CLAIM:
            reach(url, self.seen_before)
        if self.older is not None:
            with psycopg.connect(url, autocommit=True) as session:
                self.older(session)

    def finish(self, url: str) -> None:
        reach(url, self.version)
        with psycopg.connect(url, autocommit=True) as session:
            self.change(session)
            attach(session, self.version)

    def lacked_by_cache(self) -> frozenset[str]:
        """What a worker does without while the cache is stale: what either side does not know."""
        older = frozenset() if self.older is None else frozenset({PIN})
        return self.lacks | _lacks(self.seen_before) | older


def _lacks(version: str) -> frozenset[str]:
    return frozenset(name for name, since in _SINCE.items() if version < since)


def _without(*functions: str) -> Change:
    return lambda session: drop(session, *functions)


def _run(name: str) -> Change:
    return lambda session: session.execute(text(name))


def _levels() -> Mapping[str, Schema]:
    return {
        level: Schema(level, _lacks(level), seen_before=level_before(level)) for level in LEVELS
    }


SCHEMAS: Mapping[str, Schema] = {
    **_levels(),
    "seven_arguments": Schema(
        NEWEST, frozenset({SETTLE, HEARTBEAT, PIN}), _run("older_claim.sql"), slots="older.slots"
    ),
    "newest_after_seven_arguments": Schema(
        NEWEST, frozenset(), seen_before=BEFORE_ANY_CLAIM, older=_run("older_claim.sql")
    ),
    "no_pin": Schema(NEWEST, frozenset({SETTLE, PIN}), _run("no_pin.sql")),
    "eight_arguments": Schema(
        NEWEST, frozenset({SETTLE, HEARTBEAT}), _without(SETTLE, HEARTBEAT, "send_messages")
    ),
    "no_heartbeat": Schema(NEWEST, frozenset({HEARTBEAT}), _without(HEARTBEAT)),
    "no_settle": Schema(NEWEST, frozenset({SETTLE}), _without(SETTLE)),
}
