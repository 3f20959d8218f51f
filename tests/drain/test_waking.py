"""A run that idles looks at once when it is woken, and a wake-up during a look is not lost."""

from __future__ import annotations

import asyncio

from fairlease.simulate.wire import Trip

from .rig import Rig, virtual

# Far more than a look takes, far less than the first pause.
SOON_SECONDS = 0.5


@virtual
async def test_a_woken_run_takes_new_work_at_once() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 300, "poll_idle_seconds": 60})
    drain = rig.drain()
    running = asyncio.create_task(drain.run())
    await asyncio.sleep(20.0)
    rig.send("a")
    drain.setup.woken.set()
    await asyncio.sleep(SOON_SECONDS)

    assert len(rig.archived) == 1

    drain.stop()
    await running


@virtual
async def test_a_wake_up_during_a_claim_that_finds_nothing_leads_to_another() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 300, "poll_idle_seconds": 60})
    drain = rig.drain()
    # The claim has looked when the message comes; its answer is still on the way.
    rig.script("claim", Trip(1.0, 5.0))
    running = asyncio.create_task(drain.run())
    await asyncio.sleep(3.0)
    rig.send("a")
    drain.setup.woken.set()
    await asyncio.sleep(4.0 + SOON_SECONDS)

    assert len(rig.archived) == 1

    drain.stop()
    await running


@virtual
async def test_a_wake_up_without_work_neither_ends_a_run_nor_lengthens_its_idle_budget() -> None:
    rig = Rig(knobs={"idle_budget_seconds": 100, "poll_idle_seconds": 60})
    drain = rig.drain()
    running = asyncio.create_task(drain.run())
    for _ in range(3):
        await asyncio.sleep(10.0)
        drain.setup.woken.set()
    await asyncio.sleep(SOON_SECONDS)
    looks = len(rig.claims)

    report = await running

    assert looks == 4
    assert (report.reason, rig.now() < 110.0) == ("idle", True)
