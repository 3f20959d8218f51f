"""Random scenarios: `python -m tests.drain.scenarios --seconds 600`, or `--seed 7 --shrink`."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import gc
import logging
import sys
import time
from typing import TYPE_CHECKING

from fairlease.simulate.isolate import adopt_tasks
from fairlease.simulate.loop import Deadlock, run_virtually

from .plan import ILLS, Job, Plan, plan_of
from .world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

NEVER_RUN = ("not_an_object", "unknown_method", "bad_arguments")


# Each observer that raises is a traceback otherwise.
logging.getLogger("fairlease.events").setLevel(logging.CRITICAL)


def play(plan: Plan) -> list[str]:
    """What was broken, one line each; empty: every property held."""
    try:
        return run_virtually(play_world(plan)).broken
    except Deadlock as error:
        return [f"the loop is stuck: {error}"]
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001
        return [f"the loop was left by {error!r}"]


async def play_world(plan: Plan) -> World:
    """The world after its end."""
    loop = asyncio.get_running_loop()
    adopt_tasks(loop)
    world = World(plan, loop)
    world.begin()
    await world.until_drained()
    check_end(world)
    for isolate in world.born:
        isolate.kill()
        await isolate.until_gone()
    return world


def check_end(world: World) -> None:
    """After the calm: nothing is held, nothing runs, nothing is missing."""
    held = [slot.holder for slot in world.database.slots.live(world.loop.time())]
    if held:
        world.break_(f"slots are held by nobody: {held}")
    for isolate in world.born:
        if isolate.failures:
            world.break_(f"{isolate.name} raised {isolate.failures!r}")
        if not isolate.killed and not isolate.busy and isolate.live_tasks:
            world.break_(f"{isolate.name} left tasks behind: {isolate.live_tasks}")
    for msg_id, job in world.jobs.items():
        wrong = wrong_end(world, msg_id, job)
        if wrong is not None:
            world.break_(f"message {msg_id} {wrong}")


def wrong_end(world: World, msg_id: int, job: Job) -> str | None:
    queue, starts = world.database.queues[job.queue], world.starts[msg_id]
    if msg_id in queue.archive:
        if msg_id not in world.completed:
            return "is archived, and never ran to its end"
    elif msg_id not in queue.dead:
        return "is neither done nor dead"
    elif job.ill is None and not queue.dead[msg_id][1].startswith("crashed"):
        return f"is well, and dead: {queue.dead[msg_id][1]}"
    if job.ill in NEVER_RUN and starts:
        return f"is {job.ill}, and a handler ran"
    if job.ill is None and world.plan.is_calm:
        return _more_than_once(queue.archive[msg_id].read_ct, starts)
    return None


def _more_than_once(read_ct: int, starts: int) -> str | None:
    if read_ct == starts == 1:
        return None
    return f"is well, nothing went wrong, and it was read {read_ct} and started {starts} times"


def shrink(plan: Plan) -> Plan:
    """The same failure with as few messages, mishaps and oddities as still show it."""
    simpler = True
    while simpler:
        simpler = False
        for candidate in _simpler(plan):
            if play(candidate):
                plan, simpler = candidate, True
                break
    return plan


def _simpler(plan: Plan) -> Iterator[Plan]:
    for name in ("jobs", "mishaps"):
        entries = getattr(plan, name)
        size = len(entries)
        while size:
            for at in range(0, len(entries), size):
                yield dataclasses.replace(plan, **{name: entries[:at] + entries[at + size :]})
            size //= 2
    for field in dataclasses.fields(plan.weather):
        if getattr(plan.weather, field.name):
            calmer = dataclasses.replace(plan.weather, **{field.name: 0.0})
            yield dataclasses.replace(plan, weather=calmer)
    for name, plain in (("bounded", False), ("observers_raise", False), ("missing", frozenset())):
        if getattr(plan, name) != plain:
            yield dataclasses.replace(plan, **{name: plain})
    if plan.cancel_on_lost_lease:
        yield dataclasses.replace(plan, cancel_on_lost_lease=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="the first; with --shrink or alone: the only one")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long, in real time")
    parser.add_argument("--shrink", action="store_true", help="search for a smaller failure")
    asked = parser.parse_args()
    first = asked.seed or 0
    only = asked.seed is not None and not asked.seconds
    until = time.monotonic() + asked.seconds
    seed, failed = first, 0
    while seed == first or (not only and time.monotonic() < until):
        plan = plan_of(seed)
        if broken := play(plan):
            failed += 1
            _report(shrink(plan) if asked.shrink else plan, broken)
        seed += 1
    gc.collect()
    print(f"{seed - first} scenarios from seed {first}, {failed} failed; {len(ILLS)} kinds of ills")
    return 1 if failed else 0


def _report(plan: Plan, broken: list[str]) -> None:
    print(plan.describe())
    for line in play(plan) or broken:
        print(f"  BROKEN {line}")
    print(f"  again: python -m tests.drain.scenarios --seed {plan.seed} --shrink", flush=True)


if __name__ == "__main__":
    sys.exit(main())
