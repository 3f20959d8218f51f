"""`fairlease work` as a process: one event loop that drains, listens, and ends when it is told."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.app import GIVEN_UP_EXIT_CODE
from fairlease.clock import SystemClock
from fairlease.errors import ConfigurationError
from fairlease.host.engine import Engine
from fairlease.host.functions import discover
from fairlease.host.lifetime import lifetime_of
from fairlease.host.manifest import Kind
from fairlease.host.observers import Observers, start_observers
from fairlease.host.shifts import Shifts, Totals
from fairlease.settings import IssueKind, Required, load_settings
from fairlease.telemetry.logs import configure_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from fairlease.host.functions import FunctionFolder

log = logging.getLogger("fairlease.work")

# The kernel ends the process this long after its grace: also one whose loop is blocked.
_ALARM_DELAY_SECONDS = 2.0


@dataclass(slots=True)
class Resident:
    """The parts of one worker, from its start to its end."""

    shifts: Shifts
    engine: Engine
    observers: Observers
    environ: Mapping[str, str]
    grace_seconds: int

    async def run(self, on_ready: Callable[[], None]) -> Totals:
        loop = asyncio.get_running_loop()

        def tell(number: int, _frame: object) -> None:
            # At once, since a handler that blocks the loop would hold up a handler of the loop's.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            if signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0):
                signal.setitimer(signal.ITIMER_REAL, self.grace_seconds + _ALARM_DELAY_SECONDS)
            loop.call_soon_threadsafe(self._told, number)

        signal.signal(signal.SIGTERM, tell)
        signal.signal(signal.SIGINT, tell)
        listening = self._listen()
        on_ready()
        try:
            return await self.shifts.run(
                lambda folder: folder.settings(self.environ).knobs,
            )
        finally:
            if listening is not None:
                listening.cancel()
            await self.engine.aclose()
            await self.observers.aclose()

    def _told(self, number: int) -> None:
        """The first signal stops. A second Ctrl-C ends the handlers too; a second SIGTERM is one.

        A terminal and a supervisor may both send theirs.
        """
        if not self.shifts.stopping:
            log.info("stopping; what is in flight has %s s", self.grace_seconds)
            self.shifts.stop(self.grace_seconds)
        elif number == signal.SIGINT:
            self.shifts.cancel_handlers()

    def _listen(self) -> asyncio.Task[None] | None:
        required = Required(self.environ)
        if not required.has_database_url():
            log.warning("FAIRLEASE_DATABASE_URL is not set: nothing wakes this worker, it polls")
            return None
        # Here: a worker that polls through PostgREST does without psycopg.
        from fairlease.transports.notifications import Listener  # noqa: PLC0415

        queues = dict.fromkeys(q for f in self.shifts.folders for q in f.queues)
        listener = Listener(
            required.database_url().get_secret_value(),
            tuple(queues),
            self.shifts.wake,
            self.shifts.clock,
            self.shifts.dice,
        )
        return asyncio.create_task(listener.run())


def work(
    folders: Sequence[Path],
    names: Sequence[str],
    environ: Mapping[str, str],
    on_ready: Callable[[Sequence[FunctionFolder]], None],
    on_end: Callable[[Totals], None],
) -> None:
    """Drain until SIGTERM or SIGINT. Raises `ConfigurationError` for what cannot be served."""
    configure_logs(as_json=environ.get("FAIRLEASE_LOG_FORMAT") == "json")
    chosen = _chosen(discover(folders), names)
    clock = SystemClock()
    observers = start_observers(environ, clock)
    engine = Engine(environ, chosen, observers.all, observers.trace_calls)
    shifts = Shifts(
        engine.new_shift,
        tuple(chosen.values()),
        engine.observe,
        clock,
        random.Random(),  # noqa: S311 - jitter, no secrets
    )
    resident = Resident(shifts, engine, observers, environ, _grace_seconds(environ))
    asyncio.run(_to_the_end(resident, lambda: on_ready(shifts.folders), on_end))


async def _to_the_end(
    resident: Resident, on_ready: Callable[[], None], on_end: Callable[[Totals], None]
) -> None:
    totals = await resident.run(on_ready)
    on_end(totals)
    if totals.still_running:
        log.error("handlers did not end: messages %s", totals.still_running)
        for handler in logging.getLogger().handlers:
            handler.flush()
        # An orderly exit would wait for what does not end.
        os._exit(GIVEN_UP_EXIT_CODE)


def _chosen(found: Mapping[str, FunctionFolder], names: Sequence[str]) -> dict[str, FunctionFolder]:
    drains = {name: f for name, f in found.items() if f.kind is Kind.DRAIN}
    for name in names:
        if name not in drains:
            known = ", ".join(drains) or "none"
            why = "is a task, which cron pokes" if name in found else "is not there"
            raise ConfigurationError(f"function {name!r} {why}; the drains are: {known}")
    if not drains:
        raise ConfigurationError(f"no drain among {', '.join(found)}; `work` runs drains alone")
    return {name: f for name, f in drains.items() if name in names or not names}


def _grace_seconds(environ: Mapping[str, str]) -> int:
    lifetime, issues = lifetime_of(load_settings(environ).knobs, environ)
    for issue in issues:
        # A gap is one between an isolate and its successor, and there is neither.
        if issue.kind is not IssueKind.GRACE_GAP:
            log.warning("knob issue: %s", issue.message)
    return lifetime.grace_seconds
