"""A total deadline that holds even when the call below cannot be cancelled at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from fairlease.errors import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

# A task that nobody awaits any more must still be referenced until it ends.
_abandoned: set[asyncio.Task[Any]] = set()


async def within(
    seconds: float, call: Coroutine[Any, Any, T], what: str, retire: Callable[[], None]
) -> T:
    """Await `call`; past `seconds`, abandon it, `retire()` its connection, raise TransientError.

    The same happens where the caller is cancelled: a cancelled request can leak its connection.
    """
    task = asyncio.ensure_future(call)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        _abandon(task)
        retire()
        raise
    if not done:
        _abandon(task)
        retire()
        raise TransientError(f"{what}: no answer within {seconds:.1f} s")
    return task.result()


def _abandon(task: asyncio.Task[Any]) -> None:
    task.cancel()
    _abandoned.add(task)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that it is not reported as never looked at
