"""Spans as the tests look at them: kept in memory, or sent to a collector over real HTTP."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fairlease.clock import SystemClock
from fairlease.telemetry.spans import Spans
from unit.telemetry.ingest import PATIENCE_SECONDS, comes_true, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Tracer

    from fairlease.clock import Clock


@dataclass
class Kept:
    """An observer and what it made."""

    provider: TracerProvider
    memory: InMemorySpanExporter
    spans: Spans

    @property
    def tracer(self) -> Tracer:
        """As a handler has one."""
        return self.provider.get_tracer("the application")

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        return self.memory.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.ended if span.name == name]


def kept(*, verbose: bool = False, clock: Clock | None = None) -> Kept:
    provider, memory = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    spans = Spans(provider.get_tracer("fairlease"), clock or SystemClock(), runs=verbose)
    return Kept(provider, memory, spans)


@dataclass
class Collector:
    """What came, as (service, span)."""

    url: str = ""
    spans: list[tuple[str, Any]] = field(default_factory=list)

    def named(self, name: str) -> list[Any]:
        return [span for _, span in self.spans if span.name == name]

    def wait_for(self, holds: Callable[[], bool]) -> bool:
        return comes_true(holds)

    def take(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            said = {a.key: a.value.string_value for a in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [(said["service.name"], span) for span in scope.spans]


@contextmanager
def collector(*, dead: bool = False) -> Iterator[Collector]:
    """`dead`: takes connections and never answers."""
    received, over = Collector(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if dead:
                over.wait(PATIENCE_SECONDS)
                return
            received.take(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    with serving(Handler) as port:
        received.url = f"http://127.0.0.1:{port}"
        try:
            yield received
        finally:
            over.set()


def said(span: Any) -> dict[str, Any]:
    """Attributes of a span that a collector got."""
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}
