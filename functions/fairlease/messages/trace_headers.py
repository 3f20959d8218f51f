"""The sender's trace on its messages, as W3C headers, and back; nothing without OpenTelemetry."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlease.model import NewMessage

# W3C Trace Context: what is longer need not be carried on.
_LONGEST = {"traceparent": 55, "tracestate": 512}
_API = "opentelemetry.trace"


def with_trace(messages: Sequence[NewMessage]) -> Sequence[NewMessage]:
    """The messages with the active span as their origin; as they are where none is active.

    A message that brings its own `traceparent` keeps it.
    """
    headers = _active()
    if not headers:
        return messages
    return [
        message
        if "traceparent" in message.headers
        else dataclasses.replace(message, headers={**headers, **message.headers})
        for message in messages
    ]


def trace_of(headers: Mapping[str, Any]) -> dict[str, str]:
    """What of a message's headers may be a trace: anybody who may send can have written them."""
    return {
        name: value
        for name, longest in _LONGEST.items()
        if isinstance(value := headers.get(name), str) and len(value) <= longest
    }


def _active() -> dict[str, str]:
    # Where nobody has imported the API no span can be active: a sender without it pays nothing.
    if _API not in sys.modules:
        return {}
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - as above
        TraceContextTextMapPropagator,
    )

    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return headers
