"""The cron ticker: pokes functions over HTTP on their schedules, as pg_cron or Kubernetes would."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
from croniter import croniter

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from fairlease.clock import Clock

# The calendar may be set while we sleep: look at it again now and then.
_LONGEST_SLEEP_SECONDS = 30.0
_POKE_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True)
class CronJob:
    """`schedule` has five cron fields, in UTC; `pokes` are sent at once at each tick."""

    function: str
    schedule: str
    pokes: int = 1


class CronTicker:
    """`scale` 60 makes an hour of schedules pass in a minute; 1 keeps to the calendar.

    `poke` may take its time, ticks do not wait for it; it must not raise.
    """

    def __init__(
        self,
        jobs: Sequence[CronJob],
        poke: Callable[[str], Coroutine[Any, Any, None]],
        clock: Clock,
        scale: float = 1.0,
    ) -> None:
        self._jobs = jobs
        self._poke = poke
        self._clock = clock
        self._scale = scale
        self._origin = clock.now()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for job in self._jobs:
                group.create_task(self._follow(job, group))

    async def _follow(self, job: CronJob, group: asyncio.TaskGroup) -> None:
        now = self._calendar()
        while True:
            due: datetime = croniter(job.schedule, now).get_next(datetime)
            # What was missed while the calendar jumped ahead is not made up for; and a tick is only
            # looked for after a moment that reached the last one, so none comes twice.
            while (left := due - now) > timedelta(0):
                await self._clock.sleep(
                    min(left.total_seconds() / self._scale, _LONGEST_SLEEP_SECONDS)
                )
                now = self._calendar()
            for _ in range(job.pokes):
                group.create_task(self._poke(job.function))

    def _calendar(self) -> datetime:
        return self._origin + (self._clock.now() - self._origin) * self._scale


class HttpPoker:
    """Pokes hosts; `say` gets one line for each poke that was not accepted.

    `next_host` gives the URL to poke, in turns where there are several; None where there is none.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        next_host: Callable[[], str | None],
        secret: str,
        say: Callable[[str], None],
    ) -> None:
        self._client = client
        self._next_host = next_host
        self._headers = {"x-edge-function-secret": secret}
        self._say = say

    async def __call__(self, function: str) -> None:
        host = self._next_host()
        if host is None:
            return
        url = f"{host.rstrip('/')}/functions/v1/{function}"
        try:
            answer = await self._client.post(
                url, headers=self._headers, timeout=_POKE_TIMEOUT_SECONDS
            )
        except httpx.HTTPError as error:
            self._say(f"poke of {function} failed: {type(error).__name__} {error}".rstrip())
            return
        if answer.status_code != httpx.codes.ACCEPTED:
            self._say(f"poke of {function} was answered {answer.status_code}: {answer.text[:100]}")
