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

# What a function returned, or what it raised.
Ended = tuple[Any, BaseException | None]


@dataclass(slots=True)
class HandlerThreads:
    """At most `n` threads, made when the first plain function is to run."""

    n: int
    _pool: ThreadPoolExecutor | None = field(default=None)

    async def run(self, function: HandlerFunction, arguments: Any, context: Context) -> Any:
        """Return, or raise, what the function did, when its thread is through and not before.

        Cancelled before the thread has begun, it never begins.
        """
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n, thread_name_prefix="fairlease-handler")
        call = contextvars.copy_context().run
        future = self._pool.submit(call, _ended, function, arguments, context)
        returned, raised = await _until_done(future)
        if raised is not None:
            raise raised
        return returned

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False)


async def _until_done(future: Future[Ended]) -> Ended:
    running = asyncio.wrap_future(future)
    while True:
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if running.cancelled() or future.cancel():
                raise


def _ended(function: HandlerFunction, arguments: Any, context: Context) -> Ended:
    """Returned, not raised: a future accepts neither StopIteration nor, quietly, SystemExit."""
    try:
        return function(arguments, context), None
    except BaseException as error:  # noqa: BLE001 - also SystemExit: it is the handler's
        return None, error
