"""Fair, crash-safe, multi-tenant background workers for Supabase Queues (pgmq).

To follow one message, read `host.web` (poke), then `drain.run`, `drain.claim`, `drain.handle`,
`drain.settle` and `drain.release`, in this order.
"""

from __future__ import annotations

from fairlease.errors import ConfigurationError
from fairlease.messages.callers import (
    once_within,
    once_within_async,
    send_within,
    send_within_async,
)
from fairlease.messages.context import Context
from fairlease.messages.registry import Worker
from fairlease.messages.verdicts import Dead, RateLimited, Retry, Snooze
from fairlease.model import NewMessage, Sent

__all__ = [
    "ConfigurationError",
    "Context",
    "Dead",
    "NewMessage",
    "RateLimited",
    "Retry",
    "Sent",
    "Snooze",
    "Worker",
    "once_within",
    "once_within_async",
    "send_within",
    "send_within_async",
]
