"""Look at every queue once; say what was seen, and what is beyond a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlease.errors import FunctionMissing
from fairlease.events import QueueMeasured
from queue_monitor.alarms import alarms

if TYPE_CHECKING:
    from fairlease.host.tasks import TaskContext

TIMEOUT_SECONDS = 20.0


async def run(ctx: TaskContext) -> None:
    """Raises `RpcError` where the database does not answer: a failed run is reported as one."""
    if ctx.database is None:
        ctx.log.warning("skipped: this host has no database; set FAIRLEASE_DATABASE_URL")
        return
    try:
        queues = await ctx.database.queue_stats(timeout_seconds=TIMEOUT_SECONDS)
    except FunctionMissing:
        ctx.log.warning("skipped: the database is older than this; run `fairlease migrate`")
        return
    for stats in queues:
        ctx.observe(QueueMeasured(ctx.run_id, stats))
        for alarm in alarms(ctx.run_id, stats):
            ctx.observe(alarm)
