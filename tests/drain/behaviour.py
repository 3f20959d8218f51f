"""What simulated handlers do, well and badly."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pydantic import BaseModel

from fairlease.messages.context import Context  # noqa: TC001 - registration resolves it
from fairlease.messages.registry import Handler, Worker
from fairlease.messages.verdicts import Dead, RateLimited, Retry, Snooze

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlease.simulate.loop import VirtualLoop

METHOD = "work"
#: Longer than any timeout: only a cancellation ends it.
FOR_EVER = 1e7
# A block of the loop that a renewal every third of the shortest TTL survives.
BLOCK_SECONDS = 8.0


class Work(BaseModel):
    seconds: float
    ill: str | None
    times: int


class Odd(BaseException):
    """Not an Exception: no `except Exception` sees it."""


def body_of(seconds: float, ill: str | None, times: int) -> object:
    if ill == "not_an_object":
        return ["not", "an", "object"]
    method = "nobody's" if ill == "unknown_method" else METHOD
    asked = "soon" if ill == "bad_arguments" else seconds
    return {"method": method, "args": {"seconds": asked, "ill": ill, "times": times}}


async def behave(args: Work, ctx: Context, delivery: int, kill: Callable[[], None]) -> None:
    """`delivery` counts the starts of this message."""
    if args.ill is None or delivery > args.times:
        await asyncio.sleep(args.seconds / 2)
        ctx.progress("half")
        await asyncio.sleep(args.seconds / 2)
        return
    await asyncio.sleep(args.seconds / 4)
    if args.ill in RAISED:
        error = RAISED[args.ill]()
        raise error
    await _last(args.ill, kill)


def _registered() -> Handler:
    """Checked once; each isolate of each scenario puts its own function in its place."""
    worker = Worker()

    @worker.handler(METHOD, retry=Retry(max_attempts=12, base=1.0, cap=20.0))
    async def work(args: Work, ctx: Context) -> None:
        raise NotImplementedError

    return worker.handlers[METHOD]


REGISTERED = _registered()

RAISED: dict[str, Callable[[], BaseException]] = {
    "raise": lambda: ValueError("bad\x00\ud800"),
    "retry_after": lambda: Retry(after=3.0),
    "snooze": lambda: Snooze(5.0),
    "dead": lambda: Dead("it cannot work"),
    "rate_limited": lambda: RateLimited(7.0),
    "base_exception": Odd,
    "keyboard_interrupt": KeyboardInterrupt,
    "system_exit": lambda: SystemExit(3),
    "cancelled_error": asyncio.CancelledError,
    "stop_iteration": StopIteration,
}


async def _last(ill: str, kill: Callable[[], None]) -> None:
    match ill:
        case "hang":
            await asyncio.sleep(FOR_EVER)
        case "swallow" | "swallow_thrice":
            for _ in range(3 if ill == "swallow_thrice" else 1):
                try:
                    await asyncio.sleep(FOR_EVER)
                except asyncio.CancelledError:
                    await asyncio.sleep(1.0)
        case "slow_cleanup":
            try:
                await asyncio.sleep(FOR_EVER)
            finally:
                await asyncio.sleep(3.0)
        case "block":
            loop: VirtualLoop = asyncio.get_running_loop()  # type: ignore[assignment]
            loop.jump(BLOCK_SECONDS)
        case "kill_process":
            kill()
            await asyncio.sleep(FOR_EVER)
