"""Handlers that are plain functions run in threads, which cannot be cancelled."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlease.messages.context import Context
    from fairlease.messages.registry import HandlerFunction


@dataclass(slots=True)
class HandlerThreads:
    """At most `n` threads, made when the first plain function is to run."""

    n: int
    _pool: ThreadPoolExecutor | None = field(default=None)

    async def run(self, function: HandlerFunction, arguments: Any, context: Context) -> None:
        """Return, or raise what the function raised, when its thread is through and not before.

        Cancelled before the thread has begun, it never begins.
        """
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n, thread_name_prefix="fairlease-handler")
        call = contextvars.copy_context().run
        future = self._pool.submit(call, _raised_by, function, arguments, context)
        raised = await _until_done(future)
        if raised is not None:
            raise raised

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False)


async def _until_done(future: Future[BaseException | None]) -> BaseException | None:
    running = asyncio.wrap_future(future)
    while True:
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if running.cancelled() or future.cancel():
                raise


def _raised_by(function: HandlerFunction, arguments: Any, context: Context) -> BaseException | None:
    """Returned, not raised: a future accepts neither StopIteration nor, quietly, SystemExit."""
    try:
        function(arguments, context)
    except BaseException as error:  # noqa: BLE001 - also SystemExit: it is the handler's
        return error
    return None
