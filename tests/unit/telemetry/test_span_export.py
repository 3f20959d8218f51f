"""Who sets up nothing gets nothing; what is set up wrongly is said and stops no work."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from fairlease.clock import SystemClock
from fairlease.errors import FunctionMissing
from fairlease.messages.sending import send
from fairlease.model import NewMessage, Sent
from fairlease.telemetry.span_export import start_spans
from fairlease.telemetry.span_profile import Profile, trace_profile
from unit.telemetry.spans import Kept, collector, kept

if TYPE_CHECKING:
    from collections.abc import Sequence

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
# What a process of ours has imported of OpenTelemetry by the end of `code`.
IMPORTED = "\nimport sys; print([m for m in sys.modules if m.startswith('opentelemetry')])"
DRAINED = """
import asyncio, os, time
from fairlease.clock import SystemClock
from fairlease.events import HandlerEnded, HandlerStarted
from fairlease.telemetry.span_export import start_spans
started = start_spans(dict(os.environ), SystemClock())
slowest = 0.0
for n in range(5000):
    began = time.monotonic()
    started.observe(HandlerStarted("r", "q", "a", "m", n, 1, 0.0, {}))
    started.observe(HandlerEnded("r", "q", "a", "m", n, 1, "Done", 0.0))
    slowest = max(slowest, time.monotonic() - began)
print(slowest)
asyncio.run(started.aclose())
"""


def python(code: str, **variables: str) -> str:
    """What a process of its own prints: a provider of OpenTelemetry is set once and for all."""
    from stack.hosts import host_environ  # noqa: PLC0415

    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=host_environ(PYTHONPATH="functions", **variables),
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


class Port:
    """Keeps what is sent; `missing`: an older database."""

    def __init__(self, *, missing: bool = False) -> None:
        self.missing = missing
        self.sent: list[Any] = []

    async def send_messages(self, _: str, messages: Sequence[Any], *__: Any, **___: Any) -> Sent:
        if self.missing:
            raise FunctionMissing("no such function")
        self.sent += messages
        return Sent(tuple(range(len(messages))))

    async def send_batch(self, _: str, bodies: Sequence[Any], *__: Any, **___: Any) -> list[int]:
        self.sent += bodies
        return list(range(len(bodies)))


@pytest.mark.parametrize(
    ("raw", "profile", "issues"),
    [
        (None, Profile.BUSINESS, 0),
        ("business", Profile.BUSINESS, 0),
        (" Verbose ", Profile.VERBOSE, 0),
        ("", Profile.BUSINESS, 1),
        ("debug", Profile.BUSINESS, 1),
        ("\x1b[2J" * 100, Profile.BUSINESS, 1),
    ],
)
def test_a_profile_that_there_is_not_is_an_issue_and_means_business(
    raw: str | None, profile: Profile, issues: int
) -> None:
    environ = {} if raw is None else {"FAIRLEASE_TRACE_PROFILE": raw}
    found, said = trace_profile(environ)
    assert (found, len(said)) == (profile, issues)
    for issue in said:
        assert "give business or verbose; using business" in issue.message
        assert "\x1b" not in issue.message


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": " "},
        {**ENDPOINT, "OTEL_SDK_DISABLED": "true"},
        {**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_without_a_collector_there_is_nothing(environ: dict[str, str]) -> None:
    assert start_spans(environ, SystemClock()) is None


@pytest.mark.parametrize("package", ["opentelemetry.sdk.trace", "opentelemetry.exporter.otlp"])
def test_without_the_packages_there_is_nothing_and_nobody_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, package: str
) -> None:
    for name in [name for name in sys.modules if name.startswith(package)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert start_spans(ENDPOINT, SystemClock()) is None
    assert caplog.messages == []


def test_who_has_no_collector_does_not_even_import_it() -> None:
    code = (
        "import os\nfrom fairlease.clock import SystemClock\nimport fairlease.host.worker\n"
        "from fairlease.telemetry.span_export import start_spans\n"
        "assert start_spans(dict(os.environ), SystemClock()) is None"
    )
    assert python(code + IMPORTED) == "[]"


def test_a_collector_that_never_answers_slows_nothing_and_holds_no_end_up() -> None:
    with collector(dead=True) as dead:
        began = time.monotonic()
        slowest = float(python(DRAINED, OTEL_EXPORTER_OTLP_ENDPOINT=dead.url))
        assert time.monotonic() - began < 10
    assert slowest < 0.5


async def test_a_send_within_a_span_carries_it_and_ones_own_trace_stays() -> None:
    made: Kept = kept()
    port = Port()
    own = NewMessage({}, headers={"traceparent": "mine"})
    sender = {"traceparent": f"00-{'1' * 32}-{'2' * 16}-01", "tracestate": "vendor=1"}
    origin = TraceContextTextMapPropagator().extract(sender)
    with made.tracer.start_as_current_span("request", origin) as span:
        await send(port, "q", [NewMessage({}, headers={"x": 1}), own])  # type: ignore[arg-type]
    await send(port, "q", [NewMessage({})])  # type: ignore[arg-type]
    carried, kept_as_it_is, outside = [message.headers for message in port.sent]
    context = span.get_span_context()
    trace = f"00-{context.trace_id:032x}-{context.span_id:016x}-0"
    assert carried.pop("traceparent")[:-1] == trace
    assert carried == {"x": 1, "tracestate": "vendor=1"}
    assert (kept_as_it_is, outside) == ({"traceparent": "mine"}, {})


async def test_a_database_that_takes_no_headers_gets_the_message_without_its_trace() -> None:
    port = Port(missing=True)
    with kept().tracer.start_as_current_span("request"):
        await send(port, "q", [NewMessage({"n": 1})])  # type: ignore[arg-type]
    assert port.sent == [{"n": 1}]
