"""Who listens to the engine in this process: the log, and what else is configured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.settings import Required
from fairlease.telemetry.logs import log_event
from fairlease.telemetry.span_export import SpanExport, start_spans

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fairlease.clock import Clock
    from fairlease.events import Observer
    from fairlease.rpc import Rpc
    from fairlease.telemetry.sentry import Sentry


@dataclass(frozen=True, slots=True)
class Observers:
    """Made before the first run; closed after the last, which sends what waits."""

    sentry: Sentry | None
    spans: SpanExport | None

    @property
    def all(self) -> tuple[Observer, ...]:
        sentry = () if self.sentry is None else (self.sentry.observe,)
        spans = () if self.spans is None else (self.spans.observe,)
        return (log_event, *sentry, *spans)

    @property
    def trace_calls(self) -> Callable[[Rpc, str], Rpc] | None:
        return None if self.spans is None else self.spans.trace_calls

    async def aclose(self) -> None:
        if self.sentry is not None:
            await self.sentry.aclose()
        if self.spans is not None:
            await self.spans.aclose()


def start_observers(environ: Mapping[str, str], clock: Clock) -> Observers:
    """Raises `ConfigurationError` for a Sentry DSN that is none."""
    return Observers(_sentry(environ, clock), start_spans(environ, clock))


def _sentry(environ: Mapping[str, str], clock: Clock) -> Sentry | None:
    """None without a DSN, and then not even imported: half a second of every process's start."""
    if Required(environ).sentry_dsn() is None:
        return None
    from fairlease.telemetry.sentry import start_sentry  # noqa: PLC0415

    return start_sentry(environ, clock)
