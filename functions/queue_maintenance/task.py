"""Remove what is over: old archive rows and dead letters, lapsed slots, quiet circuits."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fairlease.errors import FunctionMissing
from fairlease.events import QueuesMaintained

if TYPE_CHECKING:
    from fairlease.host.tasks import TaskContext

# Rows of one step in one transaction: short, so that no claim waits and vacuum keeps up.
STEP_LIMIT = 1000
# What is left then is for the next run.
MOST_ROUNDS = 100
PAUSE_SECONDS = 0.1
TIMEOUT_SECONDS = 30.0


async def run(ctx: TaskContext) -> None:
    """Round after round until nothing is left. Raises `RpcError` where the database fails."""
    if ctx.database is None:
        ctx.log.warning("skipped: this host has no database; set FAIRLEASE_DATABASE_URL")
        return
    removed: Counter[str] = Counter()
    rounds, finished = 0, False
    while not finished and rounds < MOST_ROUNDS and not ctx.stopping.is_set():
        if rounds:
            await ctx.clock.sleep(PAUSE_SECONDS)
        try:
            step = await ctx.database.maintain_queues(STEP_LIMIT, timeout_seconds=TIMEOUT_SECONDS)
        except FunctionMissing:
            ctx.log.warning("skipped: the database is older than this; run `fairlease migrate`")
            return
        rounds += 1
        removed.update(step)
        finished = max(step.values(), default=0) < STEP_LIMIT
    shown = {name: count for name, count in removed.items() if count}
    ctx.observe(QueuesMaintained(ctx.run_id, shown, rounds, finished))
