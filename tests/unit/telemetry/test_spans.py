"""A span for each message: ambient in its own handler, continued from its own sender."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from drain.rig import Rig, virtual
from fairlease import Dead, Retry
from fairlease.events import HandlerCancelled, HandlerEnded, HandlerStarted, RunEnded
from fairlease.telemetry.span_calls import TracedCalls
from unit.telemetry.spans import Kept, kept

if TYPE_CHECKING:
    from drain.rig import Rig as RigOf

RUNS, PER_RUN = 5, 10
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


def started(headers: dict[str, Any], msg_id: int = 7) -> HandlerStarted:
    return HandlerStarted("run", "q", "acme", "greet", msg_id, 2, 1.5, headers)


def ended(msg_id: int = 7, error: BaseException | None = None, outcome: str = "Done") -> Any:
    return HandlerEnded("run", "q", "acme", "greet", msg_id, 2, outcome, 0.1, error)


async def in_a_task(made: Kept, mark: str) -> None:
    with made.tracer.start_as_current_span(f"inner {mark}"):
        await asyncio.sleep(1)


def rig_of(org: str, made: Kept, meeting: asyncio.Barrier) -> RigOf:
    rig = Rig(knobs={"drain_concurrency": PER_RUN}, more={"observe": made.spans.observe})

    @rig.handler()
    async def work(args: Any, ctx: Any) -> None:
        await meeting.wait()
        mark = f"{org}-{ctx.msg_id}"
        await asyncio.sleep(1 + ctx.msg_id % 3)
        with made.tracer.start_as_current_span(f"outer {mark}"):
            await asyncio.gather(*(in_a_task(made, mark) for _ in range(2)))

    for _ in range(PER_RUN):
        rig.send_to("work", org=org)
    return rig


@pytest.mark.parametrize("verbose", [False, True])
def test_with_fifty_in_flight_every_child_span_belongs_to_its_own_message(verbose: bool) -> None:
    made = kept(verbose=verbose)

    @virtual
    async def scenario() -> None:
        meeting = asyncio.Barrier(RUNS * PER_RUN)
        drains = [rig_of(f"org{n}", made, meeting).drain() for n in range(RUNS)]
        for n, drain in enumerate(drains):
            drain.setup.run_id = f"run{n}"
        async with asyncio.TaskGroup() as group:
            for drain in drains:
                group.create_task(drain.run())

    scenario()
    messages = made.named("work")
    assert len(messages) == RUNS * PER_RUN
    assert len({span.context.trace_id for span in messages}) == RUNS * PER_RUN
    for message in messages:
        assert message.parent is None
        mark = f"{message.attributes['fairlease.org']}-{message.attributes['messaging.message.id']}"
        [outer] = made.named(f"outer {mark}")
        assert outer.parent.span_id == message.context.span_id
        inner = made.named(f"inner {mark}")
        assert [span.parent.span_id for span in inner] == [outer.context.span_id] * 2
    assert not trace.get_current_span().get_span_context().is_valid
    assert made.spans._messages == {}


def test_a_message_goes_on_with_its_senders_trace() -> None:
    made = kept()
    made.spans.observe(started({"traceparent": TRACEPARENT, "tracestate": "vendor=1"}))
    made.spans.observe(ended())
    assert not trace.get_current_span().get_span_context().is_valid
    [span] = made.ended
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    assert span.context.trace_state["vendor"] == "1"
    said = span.attributes
    assert (said["fairlease.outcome"], said["fairlease.attempt"]) == ("Done", 2)
    assert (said["messaging.destination.name"], said["messaging.message.id"]) == ("q", "7")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"traceparent": None},
        {"traceparent": {"a": 1}},
        {"traceparent": 5},
        {"traceparent": f"00-{'0' * 32}-{PARENT}-01"},
        {"traceparent": "x" * 1_000_000},
        {"tracestate": "vendor=1"},
        {"traceparent": f"00-{TRACE}-{'0' * 16}-01", "tracestate": "=" * 512},
    ],
)
def test_what_is_no_trace_makes_a_new_one(headers: dict[str, Any]) -> None:
    made = kept()
    made.spans.observe(started(headers))
    made.spans.observe(ended())
    assert made.ended[0].parent is None


@pytest.mark.parametrize(
    ("raised", "status", "kind"),
    [
        (None, StatusCode.UNSET, None),
        (ValueError("a payload"), StatusCode.ERROR, "ValueError"),
        (Dead("a payload"), StatusCode.ERROR, "fairlease.messages.verdicts.Dead"),
    ],
)
def test_a_failure_is_an_error_of_its_kind_and_never_its_text(
    raised: Exception | None, status: StatusCode, kind: str | None
) -> None:
    made = kept()

    @virtual
    async def scenario() -> None:
        rig = Rig(more={"observe": made.spans.observe})

        @rig.handler(retry=Retry(max_attempts=1))
        async def work(args: Any, ctx: Any) -> None:
            if raised:
                raise raised

        rig.send_to("work")
        await rig.run()

    scenario()
    [span] = made.ended
    assert (span.status.status_code, span.attributes.get("error.type")) == (status, kind)
    assert "a payload" not in span.to_json()


def test_a_plain_function_in_its_thread_has_its_message_as_parent() -> None:
    made = kept()

    async def scenario() -> None:
        made.spans.observe(started({"traceparent": TRACEPARENT}))
        await asyncio.to_thread(made.tracer.start_span("in a thread").end)
        made.spans.observe(ended())

    asyncio.run(scenario())
    [message] = made.named("greet")
    assert made.named("in a thread")[0].parent.span_id == message.context.span_id


def test_a_handler_that_never_ends_has_a_span_that_does() -> None:
    made = kept()

    async def scenario() -> None:
        made.spans.observe(started({}))
        made.spans.observe(HandlerCancelled("run", "q", "acme", 7, "timeout"))
        await asyncio.to_thread(
            made.spans.observe, RunEnded("run", "stalled", 1, 1, 60.0, still_running=(7,))
        )
        made.spans.observe(ended())

    asyncio.run(scenario())
    [span] = made.ended
    assert span.attributes["fairlease.outcome"] == "left_running"
    assert [(e.name, e.attributes["reason"]) for e in span.events] == [("cancelled", "timeout")]


@pytest.mark.parametrize("verbose", [False, True])
def test_runs_and_calls_are_told_in_the_verbose_profile_alone(verbose: bool) -> None:
    made = kept(verbose=verbose)

    @virtual
    async def scenario() -> None:
        rig = Rig(more={"observe": made.spans.observe})
        rig.send("a", seconds=50.0)
        drain = rig.drain()
        if verbose:
            drain.setup.rpc = TracedCalls(rig.wire, made.spans, "run")
        await drain.run()
        assert not trace.get_current_span().get_span_context().is_valid

    scenario()
    names = {span.name for span in made.ended}
    if not verbose:
        assert names == {"sleep"}
        return
    assert names == {"run", "claim", "renew", "settle and claim", "release", "sleep"}
    [run] = made.named("run")
    for name in names - {"run", "sleep"}:
        for call in made.named(name):
            assert call.parent.span_id == run.context.span_id, name
    assert any(span.attributes["fairlease.status"] == "claimed" for span in made.named("claim"))
    assert run.attributes["fairlease.messages"] == 1


def test_times_are_the_engines_clocks() -> None:
    made = kept()

    @virtual
    async def scenario() -> None:
        rig = Rig(more={"observe": made.spans.observe})
        made.spans.clock = rig.clock
        rig.send("a", seconds=200.0)
        await rig.run()

    began = time.monotonic()
    scenario()
    [span] = made.ended
    assert (span.end_time - span.start_time) / 1e9 == pytest.approx(200.0, abs=0.01)
    assert time.monotonic() - began < 60
