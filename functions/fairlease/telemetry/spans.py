"""An observer that makes a span of each message that a handler works on, and, if asked, of runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opentelemetry import context as ambient
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from fairlease import events as ev
from fairlease.messages.trace_headers import trace_of
from fairlease.telemetry.counting import label
from fairlease.telemetry.failures import is_failure, kind_of_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextvars import Token

    from fairlease.clock import Clock

MessageKey = tuple[str, str, int, int]
_PROPAGATOR = TraceContextTextMapPropagator()
_NANOSECONDS = 1_000_000_000


@dataclass(slots=True)
class _Open:
    span: Span
    token: Token[Context]
    # A function's run is begun by the host and by the engine; the outermost end ends it.
    depth: int = 1


@dataclass(slots=True)
class Spans:
    """One for each isolate. `runs`: a span for each run too, of which calls are children."""

    tracer: Tracer
    clock: Clock
    runs: bool = False
    _runs: dict[str, _Open] = field(default_factory=dict)
    _messages: dict[MessageKey, _Open] = field(default_factory=dict)

    def observe(self, event: ev.Event) -> None:
        listener = _OF_MESSAGES.get(type(event))
        if listener is None and self.runs:
            listener = _OF_RUNS.get(type(event))
        if listener is not None:
            listener(self, event)
        if isinstance(event, ev.RunEnded):
            self._abandon(event.run_id)

    def now(self) -> int:
        """Nanoseconds since 1970, of the engine's clock."""
        return int(self.clock.now().timestamp() * _NANOSECONDS)

    def within(self, run_id: str) -> Context | None:
        """Where the calls of a run belong that nothing else has made; None: nowhere."""
        opened = self._runs.get(run_id)
        return None if opened is None else set_span_in_context(opened.span)

    def _handler_started(self, event: ev.HandlerStarted) -> None:
        """Ambient in the handler's task and in what it starts; the sender's trace goes on."""
        span = self.tracer.start_span(
            label(event.method),
            # Not the run, which is no cause of the message: without a sender's trace it is a root.
            _PROPAGATOR.extract(trace_of(event.headers), Context()),
            SpanKind.CONSUMER,
            {
                "messaging.system": "pgmq",
                "messaging.operation.type": "process",
                "messaging.destination.name": event.queue,
                "messaging.message.id": str(event.msg_id),
                "fairlease.org": label(event.org),
                "fairlease.method": label(event.method),
                "fairlease.attempt": event.attempt,
                "fairlease.run_id": event.run_id,
            },
            start_time=self.now(),
        )
        if event.queued_seconds is not None:
            span.set_attribute("fairlease.queued_seconds", event.queued_seconds)
        token = ambient.attach(set_span_in_context(span))
        self._messages[_key(event)] = _Open(span, token)

    def _handler_cancelled(self, event: ev.HandlerCancelled) -> None:
        told = (event.run_id, event.queue, event.msg_id)
        for key, opened in self._messages.items():
            if key[:3] == told:
                opened.span.add_event("cancelled", {"reason": event.reason}, self.now())

    def _handler_ended(self, event: ev.HandlerEnded) -> None:
        opened = self._messages.pop(_key(event), None)
        if opened is None:
            return  # no handler was started
        opened.span.set_attribute("fairlease.outcome", event.outcome)
        if event.error is not None:
            # Its kind alone: the text may quote the payload.
            opened.span.set_attribute("error.type", kind_of_error(event.error))
        if is_failure(event):
            opened.span.set_status(Status(StatusCode.ERROR))
        opened.span.end(self.now())
        ambient.detach(opened.token)

    def _abandon(self, run_id: str) -> None:
        """Handlers that never ended keep their context in their tasks; their spans end here."""
        for key in [key for key in self._messages if key[0] == run_id]:
            span = self._messages.pop(key).span
            span.set_attribute("fairlease.outcome", "left_running")
            span.set_status(Status(StatusCode.ERROR))
            span.end(self.now())

    def _function_started(self, event: ev.FunctionStarted) -> None:
        self._begin_run(event.run_id, {"fairlease.function": event.function})

    def _run_started(self, event: ev.RunStarted) -> None:
        self._begin_run(
            event.run_id, {"fairlease.queues": event.queues, "fairlease.driver": event.driver}
        )

    def _begin_run(self, run_id: str, attributes: Mapping[str, Any]) -> None:
        if opened := self._runs.get(run_id):
            opened.depth += 1
            opened.span.set_attributes(attributes)
            return
        given = {"fairlease.run_id": run_id, **attributes}
        span = self.tracer.start_span(
            "run", Context(), SpanKind.INTERNAL, given, start_time=self.now()
        )
        self._runs[run_id] = _Open(span, ambient.attach(set_span_in_context(span)))

    def _run_ended(self, event: ev.RunEnded) -> None:
        attributes = {
            "fairlease.reason": event.reason,
            "fairlease.messages": event.messages,
            "fairlease.claims": event.claims,
        }
        self._end_run(event.run_id, attributes)

    def _run_failed(self, event: ev.RunFailed) -> None:
        if opened := self._runs.get(event.run_id):
            opened.span.set_status(Status(StatusCode.ERROR))

    def _function_ended(self, event: ev.FunctionEnded) -> None:
        attributes = {}
        if event.error is not None:
            attributes["error.type"] = kind_of_error(event.error)
            self._run_failed(ev.RunFailed(event.run_id, ""))
        self._end_run(event.run_id, attributes)

    def _end_run(self, run_id: str, attributes: Mapping[str, Any]) -> None:
        """In the task that began it."""
        opened = self._runs.get(run_id)
        if opened is None:
            return
        opened.span.set_attributes(attributes)
        opened.depth -= 1
        if not opened.depth:
            del self._runs[run_id]
            opened.span.end(self.now())
            ambient.detach(opened.token)


def _key(event: ev.HandlerStarted | ev.HandlerEnded) -> MessageKey:
    return event.run_id, event.queue, event.msg_id, event.attempt


_OF_MESSAGES: Mapping[type[ev.Event], Callable[[Spans, Any], None]] = {
    ev.HandlerCancelled: Spans._handler_cancelled,  # noqa: SLF001 - its own table, as the others
    ev.HandlerEnded: Spans._handler_ended,  # noqa: SLF001
    ev.HandlerStarted: Spans._handler_started,  # noqa: SLF001
}
_OF_RUNS: Mapping[type[ev.Event], Callable[[Spans, Any], None]] = {
    ev.FunctionEnded: Spans._function_ended,  # noqa: SLF001
    ev.FunctionStarted: Spans._function_started,  # noqa: SLF001
    ev.RunEnded: Spans._run_ended,  # noqa: SLF001
    ev.RunFailed: Spans._run_failed,  # noqa: SLF001
    ev.RunStarted: Spans._run_started,  # noqa: SLF001
}
