"""Handlers that are not quite what they should be: no message is called done that was not."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, field_validator

from fairlease import Context, NewMessage

if TYPE_CHECKING:
    from collections.abc import Callable

    from bad_input.bench import Bench


class Raising(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def check(cls, n: int) -> int:
        return {1: n}[n]


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """As many decorators do, it hides that what it wraps is a coroutine function."""

    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


async def test_a_coroutine_function_behind_a_plain_decorator_runs_before_it_is_done(
    bench: Bench,
) -> None:
    ended: list[int] = []

    @bench.worker.handler("m")
    @plain
    async def m(args: dict[str, Any], ctx: Context) -> None:
        await asyncio.sleep(0)
        if ctx.org == "a":
            raise ValueError("heard")
        ended.append(ctx.msg_id)

    failing, good = (bench.put({"method": "m", "org": org}) for org in ("a", "b"))
    await bench.run()
    assert ended == [good]
    assert (bench.where(failing), bench.where(good)) == (["queue"], ["archive"])


async def test_a_validator_that_raises_anything_kills_its_message_and_not_the_run(
    bench: Bench,
) -> None:
    @bench.worker.handler("m")
    async def m(args: Raising, ctx: Context) -> None: ...

    ids = [bench.put({"method": "m", "org": "a", "args": {"n": n}}) for n in (1, 2, 1)]
    assert (await bench.run()).reason == "idle"
    assert [bench.where(msg_id) for msg_id in ids] == [["archive"], ["dead"], ["archive"]]
    reason, error = bench.connection.execute(
        "select reason, error from fairlease.dead_letters"
    ).fetchone() or ("", "")
    assert reason == "args of 'm': a validator raised KeyError"
    assert error.strip().endswith("KeyError: 2")


async def test_a_send_that_is_refused_is_a_failure_of_its_handler_and_sends_nothing(
    bench: Bench,
) -> None:
    """As large as the knob allows and no larger."""
    bench.knobs["message_size_limit_bytes"] = 2_000

    @bench.worker.handler("m")
    async def m(args: dict[str, int], ctx: Context) -> None:
        await ctx.send([NewMessage({"text": "x" * args["size"]}, org="a")], queue="other")

    bench.connection.execute("select fairlease.attach_queue('other')")
    fits, large = (
        bench.put({"method": "m", "org": "a", "args": {"size": size}}) for size in (1_988, 1_989)
    )
    await bench.run()
    assert (bench.where(fits), bench.where(large)) == (["archive"], ["queue"])
    assert bench.value("select count(*) from pgmq.q_other") == 1
    error = bench.value("select last_error from fairlease.message_state")
    assert "message 0: $: the message has 2001 bytes, the limit is 2000" in error
