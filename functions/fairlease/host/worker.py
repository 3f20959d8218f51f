"""The worker process: everything of an isolate, put together where it runs."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.clock import SystemClock
from fairlease.drain.budget import ISOLATE_STARTED_AT
from fairlease.host.engine import Engine
from fairlease.host.functions import FunctionFolder, discover
from fairlease.host.isolate import (
    CANCEL_BEFORE_KILL_SECONDS,
    Watchdog,
    ask_parent_for_successor,
    retire,
)
from fairlease.host.lifetime import Lifetime, lifetime_of
from fairlease.host.metrics import MetricsPage, QueueStatsCache
from fairlease.host.observers import Observers, start_observers
from fairlease.host.passing_on import Successor
from fairlease.host.runs import Runs
from fairlease.host.stop_signals import StopSignalLoop
from fairlease.host.web import Surface, build_app
from fairlease.settings import KnobIssue, Required, load_settings
from fairlease.telemetry.logs import configure_logs
from fairlease.telemetry.loop_lag import LoopLag
from fairlease.telemetry.metrics import Metrics
from fairlease.telemetry.span_profile import trace_profile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from starlette.applications import Starlette


log = logging.getLogger("fairlease.host")


@dataclass(slots=True)
class Isolate:
    """The parts of one isolate, from the start of its loop to its end."""

    engine: Engine
    runs: Runs
    lifetime: Lifetime
    clock: SystemClock
    lag: LoopLag
    observers: Observers

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        end_at = ISOLATE_STARTED_AT + self.lifetime.lifetime_seconds
        Watchdog(self.clock, end_at, self.lifetime.grace_seconds).start()
        if isinstance(loop, StopSignalLoop):
            loop.on_stop = self.stop
        retirement = asyncio.create_task(
            retire(self.lifetime, self.clock, lambda: self.runs.idle, ask_parent_for_successor)
        )
        measuring = asyncio.create_task(self.lag.run())
        try:
            yield
        finally:
            retirement.cancel()
            measuring.cancel()
            self.stop()
            await self.runs.until_idle()
            await self.engine.aclose()
            await self.observers.aclose()

    def stop(self) -> None:
        """Begin nothing new, and end what is in flight before the server would kill it."""
        if self.runs.stopping:
            return
        self.runs.stop()
        patience = max(0.0, self.lifetime.grace_seconds - CANCEL_BEFORE_KILL_SECONDS)
        asyncio.get_running_loop().call_later(patience, self.runs.cancel_handlers)


def load(folders: Sequence[Path], url: str) -> Starlette:
    """The ASGI application of this process, which serves `url`. Raises `ConfigurationError`."""
    environ = dict(os.environ)
    configure_logs(as_json=environ.get("FAIRLEASE_LOG_FORMAT") == "json")
    functions = discover(folders)
    settings = load_settings(environ)
    lifetime, issues = lifetime_of(settings.knobs, environ)
    metrics, clock = Metrics(), SystemClock()
    observers = start_observers(environ, clock)
    engine = Engine(environ, functions, [*observers.all, metrics.observe], observers.trace_calls)
    runs = Runs(engine.new_run, engine.observe)
    isolate = Isolate(engine, runs, lifetime, clock, LoopLag(clock), observers)
    known_issues = all_issues(
        [*settings.issues, *issues, *trace_profile(environ)[1]], functions, environ
    )
    if observers.sentry is not None:
        observers.sentry.report_knob_issues(i for found in known_issues.values() for i in found)
    page = MetricsPage(
        functions,
        runs,
        metrics,
        isolate.lag,
        QueueStatsCache(engine.upkeep, clock),
        slots_cap=max(f.settings(environ).knobs.org_slot_global_cap for f in functions.values()),
        knob_issues=sum(len(found) for found in known_issues.values()),
    )
    surface = Surface(
        functions=functions,
        secrets=Required(environ).function_secrets(),
        runs=runs,
        issues=known_issues,
        readiness=engine.readiness,
        metrics=page.render,
        successor=Successor(url, clock),
    )
    return build_app(surface, isolate.lifespan)


def all_issues(
    of_host: list[KnobIssue], functions: Mapping[str, FunctionFolder], environ: Mapping[str, str]
) -> dict[str, list[KnobIssue]]:
    """By function, each said once; those of the environment stand under `host`."""
    said = {"host": of_host}
    for function in functions.values():
        own = function.settings(environ).issues
        said[function.name] = [issue for issue in own if issue not in of_host]
    for where, issues in said.items():
        for issue in issues:
            log.warning("knob issue: %s", issue.message, extra={"where": where})
    return said
