"""The composition root: settings in, runs out. The only place that builds adapters."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import random
import uuid
from typing import TYPE_CHECKING

from fairlease.clock import SystemClock
from fairlease.drain.budget import RunBudget, run_budget
from fairlease.drain.renew import in_thread
from fairlease.drain.run import Drain
from fairlease.drain.setup import RunSetup
from fairlease.drain.watchdog import in_own_thread
from fairlease.errors import ConfigurationError
from fairlease.events import Observer, fan_out
from fairlease.settings import Required, Settings, Transport, load_settings
from fairlease.telemetry.logs import log_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairlease.messages.registry import Handler
    from fairlease.rpc import Database, Rpc, Upkeep
    from fairlease.settings import Knobs

# The database counts leases in whole seconds, and a loaded laptop must not lose one to a hiccup.
SHORTEST_SCALED_LEASE_SECONDS = 6
SHORTEST_SCALED_VISIBILITY_SECONDS = 12

# A run of a process without a wall clock ends after this, and the next asks anew for what the
# database lacked: it may have been migrated.
SHIFT_SECONDS = 3600

# Says that this process ended itself; `os.EX_SOFTWARE`, which not every platform has.
GIVEN_UP_EXIT_CODE = 70


class App:
    """Everything that one process needs to run functions against one database."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        observers: Sequence[Observer] = (log_event,),
        trace_calls: Callable[[Rpc, str], Rpc] | None = None,
    ) -> None:
        """Raises `ConfigurationError` where a required setting is missing or malformed.

        `trace_calls` puts something around the calls of a run, which it is given the id of.
        """
        self._trace_calls = trace_calls or _untraced
        self._environ = environ
        self._required = Required(environ)
        self._transport = self._required.transport()
        self._time_scale = _time_scale(environ)
        self._observe = fan_out(observers)
        self._rpc: Rpc | None = None
        self._upkeep: Upkeep | None = None
        self.connect()  # a missing key is said at start, not at the first poke

    def connect(self) -> Database:
        """A new client; it connects at its first call. Whoever asked for it closes it."""
        if self._transport is Transport.DIRECT:
            return _direct(self._required.database_url().get_secret_value())
        # Imported here, as below: half a second that a direct worker does not have to pay.
        from fairlease.transports.postgrest import PostgrestRpc  # noqa: PLC0415

        connection = self._required.supabase()
        return PostgrestRpc(connection.url, connection.key.get_secret_value())

    def upkeep(self) -> Upkeep:
        """For monitors and maintenance: a connection of its own, so that no claim waits for it."""
        if self._upkeep is None:
            self._upkeep = self.connect()
        return self._upkeep

    def settings(self, function_knobs: Mapping[str, object] | None = None) -> Settings:
        return load_settings(self._environ, function_knobs)

    def drain(
        self,
        name: str,
        queues: Sequence[str],
        handlers: Mapping[str, Handler],
        function_knobs: Mapping[str, object] | None = None,
        *,
        woken: asyncio.Event | None = None,
    ) -> Drain:
        """One run, not started.

        `woken` is given by a process that has no wall clock: it wakes the run, which idles rather
        than ends, and claims for a shift at most.
        """
        settings = self.settings(function_knobs)
        knobs = settings.knobs
        clock = SystemClock()
        if woken is None:
            budget = run_budget(
                knobs.org_slot_run_budget_seconds, lifetime_seconds=knobs.isolate_lifetime_seconds
            )
        else:
            knobs = knobs.model_copy(update={"idle_budget_seconds": SHIFT_SECONDS})
            budget = RunBudget(clock.monotonic() + SHIFT_SECONDS / self._time_scale)
        if self._rpc is None:
            self._rpc = self.connect()
        run_id = uuid.uuid4().hex
        setup = RunSetup(
            run_id=run_id,
            name=name,
            queues=tuple(queues),
            handlers=handlers,
            knobs=scaled(knobs, self._time_scale),
            budget=budget,
            rpc=self._trace_calls(self._rpc, run_id),
            clock=clock,
            dice=random.Random(),  # noqa: S311 - jitter and names, no secrets
            observe=self._observe,
            visibility_is_set=settings.visibility_set,
            end_process=_end_process,
            woken=woken or asyncio.Event(),
        )

        async def connect() -> Rpc:
            return self._trace_calls(self.connect(), run_id)

        return Drain(setup, in_thread(connect), in_own_thread)

    async def aclose(self) -> None:
        if self._rpc is not None:
            await self._rpc.aclose()
            self._rpc = None
        if self._upkeep is not None:
            await self._upkeep.aclose()
            self._upkeep = None


def _untraced(rpc: Rpc, _run_id: str) -> Rpc:
    return rpc


def scaled(knobs: Knobs, scale: float) -> Knobs:
    """The idle and lease times of a demonstration that runs `scale` times faster than life."""
    if scale == 1.0:
        return knobs
    lease = math.ceil(knobs.org_slot_lease_ttl_seconds / scale)
    visibility = math.ceil(knobs.visibility_timeout_seconds / scale)
    return knobs.model_copy(
        update={
            "idle_budget_seconds": knobs.idle_budget_seconds / scale,
            "poll_busy_ms": knobs.poll_busy_ms / scale,
            "poll_idle_seconds": knobs.poll_idle_seconds / scale,
            "poll_max_seconds": knobs.poll_max_seconds / scale,
            "org_slot_lease_ttl_seconds": max(SHORTEST_SCALED_LEASE_SECONDS, lease),
            "visibility_timeout_seconds": max(SHORTEST_SCALED_VISIBILITY_SECONDS, visibility),
        }
    )


def _time_scale(environ: Mapping[str, str]) -> float:
    text = environ.get("FAIRLEASE_TIME_SCALE", "1")
    try:
        scale = float(text)
    except ValueError:
        scale = math.nan
    if not 1 <= scale <= 1000:  # noqa: PLR2004 - also refuses NaN
        raise ConfigurationError(
            f"FAIRLEASE_TIME_SCALE={text[:40]!r}; give 1 to 1000 (for demonstrations), or unset it"
        )
    return scale


def _end_process(reason: str) -> None:
    """At once: what stands still would also hold up an orderly exit."""
    logging.getLogger("fairlease").critical("ending the process: %s", reason)
    for handler in logging.getLogger().handlers:
        handler.flush()
    os._exit(GIVEN_UP_EXIT_CODE)


def _direct(url: str) -> Database:
    try:
        from fairlease.transports.postgres import PostgresRpc  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError(
            "the direct transport needs psycopg; install fairlease[direct], or set SUPABASE_URL"
        ) from error
    return PostgresRpc(url)
