"""What must be true once everything has come to its end."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

from fairlease.simulate.isolate import adopt_tasks
from fairlease.simulate.loop import Deadlock, run_virtually

from .ledger import CANCELLED, DEAD, DONE, REPLAYED, WAITING, Broken
from .world import MAX_ATTEMPTS, World

if TYPE_CHECKING:
    from collections import Counter

    from .database import RealDatabase
    from .ledger import Entry
    from .plan import Job, Plan


def play(plan: Plan, database: RealDatabase, witnessed: Counter[str]) -> list[str]:
    """What was broken, one line each; empty: every property held."""

    async def main() -> World:
        loop = asyncio.get_running_loop()
        adopt_tasks(loop)
        world = World(plan, loop, database)
        await world.play()
        return world

    try:
        world = run_virtually(main())
    except (Deadlock, Broken) as error:
        return [repr(error)]
    witnessed.update(world.ledger.witnessed)
    return world.broken or at_the_end(world)


def at_the_end(world: World) -> list[str]:
    known = world.database.states()
    left_behind = known - {entry.msg_id for entry in world.ledger.among(CANCELLED)}
    broken = [f"a count of {msg_id} is left behind" for msg_id in left_behind]
    try:
        world.database.maintain()
    except Broken as error:
        return [str(error)]
    broken += [f"maintenance leaves {msg_id}" for msg_id in world.database.states()]
    broken += [f"waits for ever: {entry}" for entry in world.ledger.among(WAITING)]
    broken += [
        f"{isolate.name} raised {isolate.failures}" for isolate in world.born if isolate.failures
    ]
    broken += [f"effect {job} happened {n} times" for job, n in world.effects.items() if n > 1]
    for entry in world.ledger.among(DONE, DEAD, REPLAYED):
        if (wrong := _wrong_end(world, entry)) is not None:
            broken.append(f"{wrong}: {entry}")
    return broken


def _wrong_end(world: World, entry: Entry) -> str | None:
    job = _job_of(world.plan, entry)
    if job.never_runs is not None and world.began[entry.msg_id]:
        return f"{job.never_runs}, and a handler ran"
    if entry.state == DONE:
        if entry.msg_id not in world.returned:
            return "archived, and never ran to its end"
        calm = world.plan.is_calm and world.began[entry.msg_id] != entry.read_ct
        return "read and not run, though nothing went wrong" if calm else None
    return _wrong_death(world, entry, job)


def _wrong_death(world: World, entry: Entry, job: Job) -> str | None:
    reason = entry.reason
    if job.never_runs is not None:
        return None if not reason.startswith(("attempts", "it cannot")) else "dead for nothing"
    if reason == "it cannot work":
        return None if "dead" in job.deeds else "dead by a verdict that nobody gave"
    if reason == "max_attempts":
        return (
            None
            if entry.attempt >= (world.plan.max_attempts_of_queue or math.inf)
            else "dead too early"
        )
    if reason.startswith("attempts exhausted"):
        return None if entry.attempt >= MAX_ATTEMPTS else "dead too early"
    if reason.startswith("crashed"):
        # Also one that dies beside another's crash, as it is about to begin.
        unended = world.received[entry.msg_id] - len(entry.ends)
        return None if unended > world.plan.max_crashes else "dead of crashes that never were"
    return "dead, and nobody knows why"


def _job_of(plan: Plan, entry: Entry) -> Job:
    body = entry.body
    if isinstance(body, list):
        return plan.jobs[body[2]]
    number = body["args"]["job"]
    if isinstance(number, int):
        return plan.jobs[number]
    return next(job for job in plan.jobs if job.never_runs == "bad_arguments")
