"""The real allocator, called as a worker calls it, with the SQL clock in the test's hands."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from .values import UNTOLD, Claim, Limits, Outcome, Refused

EPOCH = datetime(2031, 1, 1, tzinfo=UTC)
ARGUMENTS = ("queue_name", "holder", "lease_ttl_seconds", "sleep_seconds", "pin_org", "n")
MOVABLE_CLOCK = """
create schema clock;
create table clock.hand (at timestamptz not null);
insert into clock.hand values ({epoch});
create or replace function fairlease.now_() returns timestamptz
language sql volatile parallel safe set search_path = ''
as $$ select h.at from clock.hand h $$;
"""
EMPTY_SEATS = """
update fairlease.seats set holder = null, queue = null, org = null, ordinal = null,
  expires_at = null, taken_at = null, claims = 0
where holder is not null
"""
CLAIM_CASTS = "%s, %s::int, %s::int, %s, %s::int, %s::int, %s::int, %s"
SETTLE_CASTS = "%s, %s, %s, %s::int, %s::int, %s::int, %s::int, %s::int, %s"


def move_clock_by_hand(connection: psycopg.Connection) -> None:
    """Replace `fairlease.now_()`, which only its owner may."""
    script = psycopg.sql.SQL(MOVABLE_CLOCK).format(epoch=psycopg.sql.Literal(EPOCH))
    connection.execute(script)


class Database:
    """The same methods as `Model`, answering in the same values."""

    def __init__(self, connection: psycopg.Connection, queues: dict[str, str]) -> None:
        self.connection = connection
        self.queues = queues
        self.number_of: dict[tuple[str, int], int] = {}
        self.id_of: dict[tuple[str, int], int] = {}
        self.onlooker = _onlooker(list(queues))

    def install(self) -> None:
        move_clock_by_hand(self.connection)
        for name, on_success in self.queues.items():
            self.connection.execute(
                "select fairlease.attach_queue(%s, on_success => %s, unique_keys => true)",
                [name, on_success],
            )

    def reset(self) -> None:
        self.number_of.clear()
        self.id_of.clear()
        tables = ["fairlease.message_state", "fairlease.dead_letters", "fairlease.org_limits"]
        tables += ["fairlease.circuits", "fairlease.archive_conflicts"]
        for name in self.queues:
            tables += [f"pgmq.q_{name}", f"pgmq.a_{name}"]
        self.connection.execute("; ".join(f"delete from {table}" for table in tables))
        self.connection.execute(EMPTY_SEATS)
        self.connection.execute("update fairlease.cursors set org = '' where org <> ''")
        self.connection.execute("update clock.hand set at = %s", [EPOCH])

    # -- time and operators

    def advance(self, milliseconds: int) -> None:
        delta = timedelta(milliseconds=milliseconds)
        self.connection.execute("update clock.hand set at = at + %s", [delta])

    def limit(self, org: str, limits: Limits) -> None:
        self.connection.execute(
            """
            insert into fairlease.org_limits as l
              (org, max_per_org, starts_per_minute, burst, paused)
            values (%(org)s, %(max)s, %(rate)s, %(burst)s, %(paused)s)
            on conflict (org) do update set max_per_org = %(max)s, starts_per_minute = %(rate)s,
              burst = %(burst)s, paused = %(paused)s
            """,
            {
                "org": org,
                "max": limits.max_per_org,
                "rate": limits.starts_per_minute,
                "burst": limits.burst,
                "paused": limits.paused,
            },
        )

    # -- the RPCs

    def send(self, queue: str, items: list[dict[str, Any]], delay_seconds: int) -> dict[str, Any]:
        answer = self._value(
            "select pgmq_public.send_messages(%s, %s, %s::int)", queue, Jsonb(items), delay_seconds
        )
        for index, (item, msg_id) in enumerate(zip(items, answer["ids"], strict=True)):
            if index not in answer["existing"]:
                self.number_of[queue, msg_id] = item["message"]["number"]
                self.id_of[queue, item["message"]["number"]] = msg_id
        ids = [self.number_of.get((queue, msg_id), -msg_id) for msg_id in answer["ids"]]
        return {"ids": ids, "existing": answer["existing"]}

    def renew(self, queue: str, holder: str, ttl_seconds: int) -> Any:
        return self._value(
            "select pgmq_public.renew_org_slot(%s, %s, %s::int)", queue, holder, ttl_seconds
        )

    def release(self, queue: str, holder: str) -> Any:
        return self._value("select pgmq_public.release_org_slot(%s, %s)", queue, holder)

    def claim(self, ask: Claim) -> dict[str, Any]:
        rows = self._rows(
            "select status, org, msg_id, read_ct, vt"
            f" from pgmq_public.claim_org_slot_and_read({CLAIM_CASTS})",
            ask.queue, ask.sleep_seconds, ask.n, ask.holder, ask.lease_ttl_seconds,
            ask.max_per_org, ask.global_cap, ask.pin_org,
        )  # fmt: skip
        messages = [
            {"number": self._number(ask.queue, msg_id), "read_ct": read_ct, "vt": _micros(vt)}
            for _, _, msg_id, read_ct, vt in rows
            if msg_id is not None
        ]
        return {"status": rows[0][0], "org": rows[0][1], "messages": messages}

    def settle_and_claim(self, ask: Claim, outcomes: list[Outcome]) -> dict[str, Any]:
        said = [self._outcome(ask.queue, outcome) for outcome in outcomes]
        answer = self._value(
            f"select pgmq_public.settle_and_claim({SETTLE_CASTS})",
            ask.queue, ask.holder, Jsonb(said), ask.n, ask.sleep_seconds,
            ask.lease_ttl_seconds, ask.max_per_org, ask.global_cap, ask.pin_org,
        )  # fmt: skip
        settled = [
            (outcome.number, row["result"])
            for outcome, row in zip(outcomes, answer["settled"], strict=True)
        ]
        if ask.n == 0:
            return {"settled": settled}
        return {
            "settled": settled,
            "status": answer["status"],
            "org": answer["org"],
            "cause": answer.get("cause"),
            "messages": [self._delivered(ask.queue, m) for m in answer["messages"]],
        }

    def heartbeat(
        self,
        queue: str,
        holder: str,
        ttl_seconds: int,
        sleep_seconds: int,
        deliveries: list[tuple[int, int]],
    ) -> dict[str, Any]:
        said = [[self.id_of[queue, number], read_ct] for number, read_ct in deliveries]
        answer = self._value(
            "select pgmq_public.heartbeat_org_slot(%s, %s, %s::int, %s::int, %s)",
            queue, holder, ttl_seconds, sleep_seconds, Jsonb(said),
        )  # fmt: skip
        heard: dict[str, Any] = {"slot_alive": answer["slot_alive"]}
        for word in ("extended", "lost", "gone"):
            heard[word] = sorted(self._number(queue, msg_id) for msg_id in answer[word])
        return heard

    # -- all that an onlooker may see

    def state(self) -> dict[str, Any]:
        seen = self._value(self.onlooker)
        return {
            "slots": sorted(tuple(row) for row in seen["slots"]),
            "queued": {
                name: sorted((self._number(name, row[0]), *row[1:]) for row in seen[f"q_{name}"])
                for name in self.queues
            },
            "archived": {
                name: sorted(self._number(name, msg_id) for msg_id in seen[f"a_{name}"])
                for name in self.queues
            },
            "dead": {
                name: sorted(
                    (self._number(queue, msg_id), attempts, reason)
                    for queue, msg_id, attempts, reason in seen["dead"]
                    if queue == name
                )
                for name in self.queues
            },
            "open": dict(seen["open"]),
            "kept": sorted(
                (queue, self._number(queue, msg_id), *counts)
                for queue, msg_id, *counts in seen["kept"]
            ),
        }

    # -- in between

    def _rows(self, query: str, *arguments: Any) -> list[tuple[Any, ...]]:
        try:
            return self.connection.execute(query, arguments).fetchall()  # type: ignore[arg-type]
        except psycopg.errors.RaiseException as error:
            raise Refused(_named_in(str(error))) from error

    def _value(self, query: str, *arguments: Any) -> Any:
        return self._rows(query, *arguments)[0][0]

    def _number(self, queue: str, msg_id: int) -> int:
        """The number in the message's body; negative for an id that nobody sent."""
        return self.number_of.get((queue, msg_id), -msg_id)

    def _outcome(self, queue: str, outcome: Outcome) -> dict[str, Any]:
        said: dict[str, Any] = {
            "id": self.id_of[queue, outcome.number],
            "ct": outcome.read_ct,
            "do": outcome.do,
            "after_ms": outcome.after_ms,
            "reason": outcome.reason,
        }
        if outcome.limit_ms is not None:
            untold = outcome.limit_ms == UNTOLD
            said["limit"] = {"until_ms": None if untold else outcome.limit_ms, "reason": "rate"}
        return said

    def _delivered(self, queue: str, message: dict[str, Any]) -> dict[str, Any]:
        return {
            "number": self._number(queue, message["msg_id"]),
            "read_ct": message["read_ct"],
            "vt": _micros(datetime.fromisoformat(message["vt"])),
            "attempt": message["attempt"],
            "crashes": message["crashes"],
        }


def _onlooker(queues: list[str]) -> str:
    """One query for everything there is to see, times in microseconds since EPOCH."""
    parts = [
        (
            "slots",
            f"holder, queue, org, {_since('expires_at')}",
            "fairlease.seats where holder is not null and expires_at > fairlease.now_()",
        ),
        ("dead", "queue, msg_id, attempts, reason", "fairlease.dead_letters"),
        ("open", f"org, {_since('open_until')}", "fairlease.circuits where open_until is not null"),
        (
            "kept",
            "queue, msg_id, closed_count, uncounted, begun_count",
            "fairlease.message_state",
        ),
    ]
    for name in queues:
        columns = f"msg_id, fairlease.org_of(message, headers), read_ct, {_since('vt')}"
        parts.append((f"q_{name}", columns, f"pgmq.q_{name}"))
    arrays = [
        f"'{name}', (select coalesce(jsonb_agg(jsonb_build_array({columns})), '[]') from {rest})"
        for name, columns, rest in parts
    ]
    arrays += [
        f"'a_{name}', (select coalesce(jsonb_agg(msg_id), '[]') from pgmq.a_{name})"
        for name in queues
    ]
    return f"select jsonb_build_object({', '.join(arrays)})"


def _since(column: str) -> str:
    return f"(extract(epoch from {column} - '{EPOCH.isoformat()}') * 1000000)::bigint"


def _micros(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def _named_in(text: str) -> set[str]:
    return {name for name in ARGUMENTS if re.search(rf"\b{name}\b", text)}
