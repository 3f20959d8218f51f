"""What waits in queues: measured with the reason, paused, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlease.admin.operating import operate

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 1_000
_HELD = """
select q.queue, q.paused, fairlease.measure_holdups(q, fairlease.now_()) as held
from fairlease.queues q
where to_regclass(format('pgmq.%%I', q.table_name)) is not null
"""
_PURGE = """
select fairlease.purge_waiting(q, %(after)s, %(until)s, %(limit)s)
from fairlease.queues q where q.queue = %(queue)s
"""


def stats(url: str) -> list[dict[str, Any]]:
    """Each attached queue: its counts, what holds its messages up, and that in words."""
    with operate(url) as session:
        measured = session.value("select pgmq_public.queue_stats()")
        held = {row["queue"]: row for row in session.rows(_HELD)}
    for queue in measured:
        known = held.get(queue["queue"], {"paused": False, "held": {}})
        queue |= {"paused": known["paused"], **known["held"]}
        queue["held_up_by"] = held_up_by(queue)
    return list(measured)


def held_up_by(queue: dict[str, Any]) -> list[str]:
    """Why messages wait, the most likely reason first; empty where nothing is due."""
    if not queue["ready"]:
        return []
    if queue["paused"]:
        return ["the queue is paused"]
    says = [
        f"{queue[name]} {text}"
        for name, text in (
            ("orgs_paused", "orgs paused"),
            ("circuits_open", "circuits open"),
            ("orgs_out_of_tokens", "orgs out of tokens"),
            ("orgs_at_limit", "orgs at their slot limit"),
        )
        if queue.get(name)
    ]
    return says if queue.get("slots") else [*says, "nobody drains: no slot is held"]


def pause(url: str, queue: str, *, paused: bool) -> bool:
    """False if it was so already."""
    with operate(url) as session:
        session.queue(queue)
        query = "select fairlease.pause_queue(%(queue)s, %(paused)s)"
        return bool(session.value(query, queue=queue, paused=paused))


def count_waiting(url: str, queue: str) -> int:
    """At most as exact as the moment: for a question before a purge."""
    with operate(url) as session:
        session.queue(queue)
        [found] = [
            entry
            for entry in session.value("select pgmq_public.queue_stats()")
            if entry["queue"] == queue
        ]
    return int(found["ready"]) + int(found["delayed"])


def purge(
    url: str, queue: str, progress: Callable[[int], None] = lambda _removed: None
) -> dict[str, int]:
    """Remove what waited when it began: `removed`, and `running`, which are left.

    Each chunk is a transaction; what is sent while it runs stays, so that it ends.
    """
    done = {"removed": 0, "running": 0}
    with operate(url) as session:
        session.queue(queue)
        until = session.value(
            "select fairlease.last_id(q) from fairlease.queues q where q.queue = %(queue)s",
            queue=queue,
        )
        after: int | None = 0
        while after is not None:
            chunk = session.value(_PURGE, queue=queue, after=after, until=until, limit=CHUNK)
            done["removed"] += chunk["removed"]
            done["running"] += chunk["running"]
            after = chunk["last_id"]
            progress(done["removed"])
    return done
