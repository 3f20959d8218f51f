"""State of one message or run is never on the events of another."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import sentry_sdk

from drain.rig import Rig, virtual
from fairlease import Retry
from fairlease.events import RunEnded, RunStarted, TopUpSkipped

if TYPE_CHECKING:
    from unit.telemetry.conftest import Start
    from unit.telemetry.ingest import Ingest

RUNS, PER_RUN = 5, 10


async def marks(org: str, msg_id: int) -> None:
    """What handlers do: set things, wait, start tasks, gather, leave crumbs."""
    mark = f"{org}-{msg_id}"
    sentry_sdk.set_tag("own", mark)
    sentry_sdk.set_user({"id": mark})
    for step in range(3):
        await asyncio.sleep(1 + msg_id % 3)
        sentry_sdk.add_breadcrumb(category="step", message=f"{mark} {step}")
    await asyncio.gather(*(in_a_task(mark, n) for n in range(2)))


async def in_a_task(mark: str, n: int) -> None:
    await asyncio.sleep(n)
    sentry_sdk.add_breadcrumb(category="step", message=f"{mark} task {n}")


def rig_of(org: str, observe: Any, meeting: asyncio.Barrier) -> Rig:
    rig = Rig(knobs={"drain_concurrency": PER_RUN}, more={"observe": observe})

    @rig.handler(retry=Retry(max_attempts=1))
    async def work(args: Any, ctx: Any) -> None:
        await meeting.wait()
        await marks(ctx.org, ctx.msg_id)
        if ctx.msg_id % 2:
            raise ValueError(ctx.org)
        sentry_sdk.capture_message(f"said by {ctx.org}-{ctx.msg_id}")

    for _ in range(PER_RUN):
        rig.send_to("work", org=org)
    return rig


def test_fifty_messages_in_flight_have_each_their_own_scope(start: Start, received: Ingest) -> None:
    sentry = start()

    @virtual
    async def scenario() -> None:
        meeting = asyncio.Barrier(RUNS * PER_RUN)
        rigs = [rig_of(f"org{n}", sentry.observe, meeting) for n in range(RUNS)]
        drains = [rig.drain() for rig in rigs]
        for n, drain in enumerate(drains):
            drain.setup.run_id = f"run{n}"
        async with asyncio.TaskGroup() as group:
            for drain in drains:
                group.create_task(drain.run())

    scenario()
    sentry_sdk.flush(5)
    assert len(received.events) == RUNS * PER_RUN
    for event in received.events:
        tags = event["tags"]
        mark = f"{tags['org']}-{tags['msg_id']}"
        assert tags["own"] == mark
        assert event["user"]["id"] == mark
        crumbs = [crumb["message"] for crumb in event["breadcrumbs"]["values"]]
        assert len(crumbs) == 5
        assert {crumb.split()[0] for crumb in crumbs} == {mark}
        assert tags["run_id"] == f"run{tags['org'][-1]}"
        assert (tags["method"], tags["queue"]) == ("work", "q")
    assert len({(e["tags"]["org"], e["tags"]["msg_id"]) for e in received.events}) == 50


def test_nothing_of_a_message_or_run_is_left_behind(start: Start, received: Ingest) -> None:
    sentry = start()

    @virtual
    async def scenario() -> None:
        rig = Rig(more={"observe": sentry.observe})

        @rig.handler()
        async def work(args: Any, ctx: Any) -> None:
            sentry_sdk.set_tag("own", "x")
            raise ValueError

        rig.send_to("work")
        await rig.run()
        sentry_sdk.capture_message("afterwards")

    scenario()
    sentry_sdk.capture_message("outside")
    sentry_sdk.flush(5)
    for event in received.events[-2:]:
        assert not event.get("tags"), event
        assert not (event.get("breadcrumbs") or {}).get("values")
    assert sentry.scopes._messages == {}
    assert sentry.scopes._runs == {}


def test_why_a_run_ended_and_skipped_a_top_up_stays_with_that_run(
    start: Start, received: Ingest
) -> None:
    sentry = start()
    for run_id, reason in (("one", "failures"), ("two", "unreachable")):
        sentry.observe(RunStarted(run_id, ("q",), "d", 1.0))
        if run_id == "one":
            sentry.observe(TopUpSkipped(run_id, "q", "a", "quantum"))
        still = (7,) if run_id == "one" else ()
        sentry.observe(RunEnded(run_id, reason, 0, 0, 1.0, still))
    sentry_sdk.flush(5)
    first, second = [event["tags"] for event in received.events]
    assert first["org_slot"] == "failures"
    assert first["org_slot_refill"] == "quantum"
    assert first["org_slot_release_deferred"] == "handlers_running"
    assert second == {"run_id": "two", "org_slot": "unreachable"}


def test_what_the_application_had_set_is_on_every_event(start: Start, received: Ingest) -> None:
    sentry_sdk.set_tag("region", "north")
    sentry = start()

    @virtual
    async def scenario() -> None:
        rig = Rig(more={"observe": sentry.observe})

        @rig.handler()
        async def work(args: Any, ctx: Any) -> None:
            raise ValueError

        rig.send_to("work")
        await rig.run()

    scenario()
    sentry_sdk.flush(5)
    assert received.events[0]["tags"]["region"] == "north"
