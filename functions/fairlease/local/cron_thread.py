"""The cron ticker beside a program that is not asynchronous."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

import httpx

from fairlease.local.cron import CronJob, CronTicker, HttpPoker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlease.clock import Clock

_JOIN_SECONDS = 5.0


class CronThread:
    """Ticks from `start` to `stop`."""

    def __init__(
        self,
        jobs: Sequence[CronJob],
        *,
        next_host: Callable[[], str | None],
        secret: str,
        say: Callable[[str], None],
        clock: Clock,
        scale: float = 1.0,
    ) -> None:
        self._jobs = jobs
        self._next_host = next_host
        self._secret = secret
        self._say = say
        self._clock = clock
        self._scale = scale
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="cron", daemon=True)

    def start(self) -> None:
        self._task = self._loop.create_task(self._tick())
        self._thread.start()

    def stop(self) -> None:
        """Pokes under way are given up."""
        if self._task is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        assert self._task is not None  # noqa: S101 - `start` made it
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)
        self._loop.close()

    async def _tick(self) -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            poke = HttpPoker(client, self._next_host, self._secret, self._say)
            await CronTicker(self._jobs, poke, self._clock, self._scale).run()
