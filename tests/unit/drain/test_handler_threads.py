from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from fairlease.drain.threads import HandlerThreads

here: contextvars.ContextVar[str] = contextvars.ContextVar("here", default="nowhere")
NO_CONTEXT: Any = None


async def test_a_plain_function_sees_the_context_of_its_message() -> None:
    seen: list[str] = []
    here.set("message 7")

    await HandlerThreads(1).run(lambda _a, _c: seen.append(here.get()), None, NO_CONTEXT)

    assert seen == ["message 7"]


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()]
)
async def test_what_a_plain_function_raises_arrives_as_it_is(error: BaseException) -> None:
    def fail(_arguments: Any, _context: Any) -> None:
        raise error

    with pytest.raises(type(error)):
        await HandlerThreads(1).run(fail, None, NO_CONTEXT)


async def test_a_stop_iteration_does_not_hang_the_message() -> None:
    def fail(_arguments: Any, _context: Any) -> None:
        raise StopIteration

    with pytest.raises(RuntimeError):
        await asyncio.wait_for(HandlerThreads(1).run(fail, None, NO_CONTEXT), 5.0)


async def test_a_thread_that_runs_is_awaited_however_often_its_handler_is_cancelled() -> None:
    leave, entered = threading.Event(), threading.Event()

    def work(_arguments: Any, _context: Any) -> None:
        entered.set()
        leave.wait(5.0)

    task = asyncio.create_task(HandlerThreads(1).run(work, None, NO_CONTEXT))
    await asyncio.to_thread(entered.wait, 5.0)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    leave.set()

    assert await task is None


async def test_a_function_that_waits_for_a_thread_is_never_begun_once_it_is_cancelled() -> None:
    leave, begun = threading.Event(), []
    threads = HandlerThreads(1)
    first = asyncio.create_task(threads.run(lambda _a, _c: leave.wait(5.0), None, NO_CONTEXT))
    second = asyncio.create_task(threads.run(lambda _a, _c: begun.append(1), None, NO_CONTEXT))
    await asyncio.sleep(0.05)
    second.cancel()
    await asyncio.wait({second})
    leave.set()
    await first
    threads.close()

    assert second.cancelled()
    assert begun == []
