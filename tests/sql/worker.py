"""One holder's view of the allocator, and the database clock of a test."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True)
class Answer:
    status: str | None
    org: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    cause: str | None = None
    retry_after_ms: int | None = None
    settled: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ids(self) -> list[int]:
        return [message["msg_id"] for message in self.messages]

    @property
    def deliveries(self) -> list[list[int]]:
        return [[message["msg_id"], message["read_ct"]] for message in self.messages]

    @property
    def results(self) -> list[str]:
        return [item["result"] for item in self.settled]


class Worker:
    """A holder on a session; arguments that a call does not name are these."""

    def __init__(self, session: psycopg.Connection, holder: str, queue: str = "jobs") -> None:
        self.session = session
        self.holder = holder
        self.queue = queue
        self.limits: dict[str, Any] = {
            "n": 1,
            "sleep_seconds": 120,
            "lease_ttl_seconds": 60,
            "max_per_org": 1,
            "global_cap": 8,
        }

    def plain(self, **changes: Any) -> Answer:
        """A claim in the form that every worker speaks."""
        asked = {"queue_name": self.queue, "holder": self.holder, **self.limits, **changes}
        rows = self._rows("claim_org_slot_and_read", asked)
        first = rows[0]
        messages = [row for row in rows if row["msg_id"] is not None]
        return Answer(first["status"], first["org"], messages)

    def claim(self, **changes: Any) -> Answer:
        """A claim that says its cause."""
        return self.settle([], **changes)

    def settle(self, outcomes: list[Any], **changes: Any) -> Answer:
        asked = {"queue_name": self.queue, "holder": self.holder, **self.limits, **changes}
        value = self.call("settle_and_claim", outcomes=Jsonb(outcomes), **asked)
        return Answer(
            value["status"],
            value["org"],
            value["messages"],
            value.get("cause"),
            value.get("retry_after_ms"),
            value["settled"],
        )

    def settle_only(self, *outcomes: Any) -> list[str]:
        return self.settle(list(outcomes), n=0).results

    def heartbeat(self, deliveries: list[list[int]], **changes: Any) -> dict[str, Any]:
        asked = {"lease_ttl_seconds": 60, "sleep_seconds": 120, **changes}
        return self.call(
            "heartbeat_org_slot",
            queue_name=self.queue,
            holder=self.holder,
            deliveries=Jsonb(deliveries),
            **asked,
        )

    def renew(self, lease_ttl_seconds: int = 60) -> bool:
        return self.call(
            "renew_org_slot",
            queue_name=self.queue,
            holder=self.holder,
            lease_ttl_seconds=lease_ttl_seconds,
        )

    def release(self) -> bool:
        return self.call("release_org_slot", queue_name=self.queue, holder=self.holder)

    def call(self, function: str, **arguments: Any) -> Any:
        return self._rows(function, arguments)[0][function]

    def _rows(self, function: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        named = ", ".join(f"{name} => %({name})s" for name in arguments)
        with self.session.cursor(row_factory=dict_row) as cursor:
            cursor.execute(f"select * from pgmq_public.{function}({named})", arguments)
            return cursor.fetchall()


class MovableClock:
    """Puts a table in the place of one database's clock, for all its sessions."""

    def __init__(self, session: psycopg.Connection) -> None:
        self._session = session
        session.execute("create table fairlease.test_clock as select clock_timestamp() as now")
        session.execute(
            "create or replace function fairlease.now_() returns timestamptz language sql volatile "
            "set search_path = '' as 'select now from fairlease.test_clock'"
        )

    def now(self) -> datetime:
        row = self._session.execute("select fairlease.now_()").fetchone()
        assert row is not None
        return row[0]

    def advance(self, seconds: float) -> None:
        self._session.execute(
            "update fairlease.test_clock set now = now + %s", (timedelta(seconds=seconds),)
        )


def done(delivery: list[int], **more: Any) -> dict[str, Any]:
    return outcome("done", delivery, **more)


def outcome(verb: str, delivery: list[int], **more: Any) -> dict[str, Any]:
    return {"id": delivery[0], "ct": delivery[1], "do": verb, **more}
