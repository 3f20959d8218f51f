"""The real database with the interface of the simulated one: each call is one step of virtual time.

What is called is the shipped client, on a loop of its own in a thread; the SQL's clock is set to
the virtual one. Every call that takes effect is entered into the ledger, whoever hears of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from differential.database import EMPTY_SEATS, EPOCH, move_clock_by_hand
from fairlease.admin import backlog, dead_letters

from .ledger import CANCELLED, DEAD, DONE, WAITING, require

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence

    from fairlease.model import ClaimAnswer, ClaimRequest, Delivery, Heartbeat, Outcome, Sent
    from fairlease.rpc import Rpc

    from .ledger import Entry, Ledger
    from .plan import Plan

QUEUE = "ends"
SOON = 20.0
TABLES = (
    f"pgmq.q_{QUEUE}",
    f"pgmq.a_{QUEUE}",
    "fairlease.message_state",
    "fairlease.dead_letters",
    "fairlease.circuits",
    "fairlease.inbox",
)
EVERYWHERE = f"""
select 'waiting' as state, msg_id, read_ct, message, headers ->> 'x-org' as org,
  headers -> 'x-replay-of' as origin, null::int as attempts, null as reason, null::bigint as letter
from pgmq.q_{QUEUE}
union all
select 'done', msg_id, read_ct, message, headers ->> 'x-org', headers -> 'x-replay-of', null, null,
  null
from pgmq.a_{QUEUE}
union all
select 'dead', msg_id, read_ct, message, org, headers -> 'x-replay-of', attempts, reason, id
from fairlease.dead_letters
"""


@contextlib.contextmanager
def loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextlib.contextmanager
def opened(url: str, connect: Callable[[], Rpc]) -> Iterator[RealDatabase]:
    """`url` is that of a database of our own; `connect` makes the client that is tried."""
    with psycopg.connect(url, autocommit=True) as connection, loop_in_thread() as loop:
        move_clock_by_hand(connection)
        connection.execute("select fairlease.attach_queue(%s, unique_keys => true)", [QUEUE])
        rpc = connect()
        try:
            yield RealDatabase(url, connection, rpc, loop)
        finally:
            asyncio.run_coroutine_threadsafe(rpc.aclose(), loop).result(SOON)


@dataclass(slots=True)
class RealDatabase:
    """`url` and `connection` are an operator's."""

    url: str
    connection: psycopg.Connection
    rpc: Rpc
    loop: asyncio.AbstractEventLoop
    now: Callable[[], float] = lambda: 0.0
    ledger: Ledger = field(init=False)
    keeps_done: bool = True

    def reset(self, plan: Plan, ledger: Ledger, now: Callable[[], float]) -> None:
        self.ledger, self.now = ledger, now
        self.keeps_done = plan.on_success == "archive"
        self.connection.execute("; ".join(f"delete from {table}" for table in TABLES))
        self.connection.execute(EMPTY_SEATS)
        self.connection.execute("update fairlease.cursors set org = '' where org <> ''")
        self.connection.execute(
            "update fairlease.queues set max_attempts = %s, on_success = %s",
            [plan.max_attempts_of_queue, plan.on_success],
        )

    # -- as `fairlease.simulate.database.Database`

    def claim(self, request: ClaimRequest) -> ClaimAnswer:
        answer = self._call(self.rpc.claim_org_slot_and_read(request, timeout_seconds=SOON))
        self.ledger.claimed(answer, request.sleep_seconds)
        return answer

    def settle_and_claim(self, request: ClaimRequest, outcomes: Sequence[Outcome]) -> ClaimAnswer:
        call = self.rpc.settle_and_claim(request, outcomes, timeout_seconds=SOON)
        answer = self._call(call)
        self.ledger.settled(outcomes, answer.settled)
        self.ledger.claimed(answer, request.sleep_seconds)
        if outcomes:
            self.audit()
        return answer

    def heartbeat(
        self,
        queue: str,
        holder: str,
        ttl_seconds: int,
        sleep_seconds: int,
        deliveries: Sequence[Delivery],
    ) -> Heartbeat:
        heard = self._call(
            self.rpc.heartbeat_org_slot(
                queue, holder, ttl_seconds, sleep_seconds, deliveries, timeout_seconds=SOON
            )
        )
        self.ledger.beaten(deliveries, sleep_seconds, heard)
        return heard

    def renew(self, queue: str, holder: str, ttl_seconds: int) -> bool:
        return self._call(self.rpc.renew_org_slot(queue, holder, ttl_seconds, timeout_seconds=SOON))

    def release(self, queue: str, holder: str) -> bool:
        return self._call(self.rpc.release_org_slot(queue, holder, timeout_seconds=SOON))

    def send_messages(self, queue: str, messages: Sequence[Any], delay_seconds: int) -> Sent:
        call = self.rpc.send_messages(queue, messages, delay_seconds, timeout_seconds=SOON)
        sent = self._call(call)
        self.ledger.sent(messages, delay_seconds, sent)
        return sent

    def once(self, queue: str, key: str, token: str) -> bool:
        return self._call(self.rpc.once(queue, key, token, timeout_seconds=SOON))

    # -- as an operator's commands

    def replay(self, only: int | None = None) -> None:
        """All dead letters, or one of these."""
        self._tick()
        letters = {row["letter"]: row["msg_id"] for row in self._rows() if row["letter"]}
        if only is not None:
            letters = dict(sorted(letters.items())[only : only + 1])
        chosen = dead_letters.Which() if only is None else list(letters)
        said = dead_letters.replay(self.url, chosen)
        self.ledger.replayed(letters, {each["id"]: each["msg_id"] for each in said.replayed})
        require({each["id"] for each in said.refused} <= letters.keys(), f"refused: {said}")
        require(not said.gone, f"nobody else replays: {said}")
        self.audit()

    def purge_dead(self) -> None:
        removed = dead_letters.purge(self.url, dead_letters.Which())
        dead = [entry.msg_id for entry in self.ledger.among(DEAD)]
        require(removed == len(dead), f"{removed} purged of {dead}")
        self.ledger.discarded(dead)
        self.audit()

    def purge_waiting(self) -> None:
        self._tick()
        backlog.purge(self.url, QUEUE)
        self.ledger.discarded(self.ledger.idle)
        self.audit()

    def cancel(self) -> None:
        """The oldest message, whatever becomes of it just now, by pgmq's own function."""
        for entry in self.ledger.among(WAITING)[:1]:
            self.connection.execute("select pgmq.archive(%s, %s)", [QUEUE, entry.msg_id])
            self.ledger.cancelled(entry.msg_id)
        self.audit()

    def maintain(self) -> None:
        self._tick()
        self.connection.execute("select fairlease.maintain()")
        self.audit()

    # -- what is in the tables

    def audit(self) -> None:
        """Each message stands where the ledger says, there once, and nowhere else."""
        kept = (WAITING, DEAD, CANCELLED, *((DONE,) if self.keeps_done else ()))
        expected = sorted(_as_row(entry) for entry in self.ledger.among(*kept))
        found = sorted(self._described(row) for row in self._rows())
        require(found == expected, f"the tables hold {found}, not {expected}")

    def states(self) -> set[int]:
        """Ids of messages of which something is remembered."""
        found = self.connection.execute("select msg_id from fairlease.message_state").fetchall()
        return {msg_id for (msg_id,) in found}

    def _described(self, row: dict[str, Any]) -> tuple[Any, ...]:
        origin = (row["origin"] or {}).get("msg_id")
        body = repr(row["message"])
        dead = (row["attempts"], row["reason"]) if row["state"] == DEAD else ()
        return (row["msg_id"], row["state"], row["read_ct"], row["org"], body, str(origin), *dead)

    def _rows(self) -> list[dict[str, Any]]:
        with self.connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(EVERYWHERE).fetchall()

    def _tick(self) -> None:
        at = EPOCH + timedelta(seconds=self.now())
        self.connection.execute("update clock.hand set at = %s where at <> %s", [at, at])

    def _call(self, call: Coroutine[Any, Any, Any]) -> Any:
        self._tick()
        return asyncio.run_coroutine_threadsafe(call, self.loop).result(SOON)


def _as_row(entry: Entry) -> tuple[Any, ...]:
    body = entry.body if entry.key is None else {**entry.body, "key": entry.key}
    dead = (entry.attempt, entry.reason) if entry.state == DEAD else ()
    return (
        entry.msg_id,
        DONE if entry.state == CANCELLED else entry.state,
        entry.read_ct,
        entry.org,
        repr(_in_order(body)),
        str(entry.replay_of),
        *dead,
    )


def _in_order(value: Any) -> Any:
    """Keys as jsonb has them: the shorter first."""
    if isinstance(value, dict):
        by_length = sorted(value.items(), key=lambda item: (len(item[0]), item[0]))
        return {key: _in_order(each) for key, each in by_length}
    return value
