"""Starts OpenTelemetry where somebody takes spans, and ends it within a bound."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.telemetry.span_profile import (
    Profile,
    has_collector,
    is_disabled,
    trace_profile,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.sdk.trace import TracerProvider

    from fairlease.clock import Clock
    from fairlease.events import Observer
    from fairlease.rpc import Rpc

FLUSH_SECONDS = 2.0
_SERVICE = "fairlease"

log = logging.getLogger("fairlease.spans")


@dataclass(frozen=True, slots=True)
class SpanExport:
    """What an isolate needs: an observer, and, in the verbose profile, a port that tells calls."""

    observe: Observer
    trace_calls: Callable[[Rpc, str], Rpc] | None
    provider: TracerProvider

    async def aclose(self) -> None:
        """Send what waits, for two seconds at most."""
        await _within(FLUSH_SECONDS, self.provider.force_flush)


def start_spans(environ: Mapping[str, str], clock: Clock) -> SpanExport | None:
    """None without an endpoint, or without the packages of the extra `otel`.

    The standard variables, OTEL_*, say where to and how much; a provider that the application has
    set up is used as it is.
    """
    if is_disabled(environ):
        return None
    try:
        provider = _application_provider()
        if provider is None and has_collector(environ):
            provider = _own_provider(environ)
    except ImportError:
        return None
    except Exception:
        # A bad OTEL_* value: work goes on, without spans.
        log.exception("OpenTelemetry did not start: no spans")
        return None
    if provider is None:
        return None
    from fairlease.telemetry.span_calls import TracedCalls  # noqa: PLC0415 - extra `otel`
    from fairlease.telemetry.spans import Spans  # noqa: PLC0415

    verbose = trace_profile(environ)[0] is Profile.VERBOSE
    spans = Spans(provider.get_tracer("fairlease"), clock, runs=verbose)

    def trace_calls(rpc: Rpc, run_id: str) -> Rpc:
        return TracedCalls(rpc, spans, run_id)

    return SpanExport(spans.observe, trace_calls if verbose else None, provider)


def _application_provider() -> TracerProvider | None:
    """The one that the application has set, if it is the SDK's."""
    sdk = sys.modules.get("opentelemetry.sdk.trace")
    if sdk is None:
        return None
    from opentelemetry import trace  # noqa: PLC0415

    provider = trace.get_tracer_provider()
    return provider if isinstance(provider, sdk.TracerProvider) else None


def _own_provider(environ: Mapping[str, str]) -> TracerProvider:
    from opentelemetry import trace  # noqa: PLC0415
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    named = "OTEL_SERVICE_NAME" in environ or "service.name=" in environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    resource = Resource.create({} if named else {"service.name": _SERVICE})
    # An exit hook would wait for a collector that is dead; `aclose` waits, but not for long.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    # For the handlers' own spans: `opentelemetry.trace.get_tracer(...)`.
    trace.set_tracer_provider(provider)
    return provider


async def _within(seconds: float, work: Callable[[], object]) -> None:
    """In a daemon thread, which the end of the process does not wait for as it does for a pool."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            with contextlib.suppress(RuntimeError):  # nobody waits any more
                loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name="fairlease-flush", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            await done.wait()
    except TimeoutError:
        log.warning("the collector did not take the last spans within %s s", seconds)
