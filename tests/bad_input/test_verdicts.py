"""What a handler says of its message is heard, however it is said: no message hangs or spins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from fairlease import Context, Dead, RateLimited, Retry, Snooze
from fairlease.events import HandlerEnded, SettleAnswered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bad_input.bench import Bench

YEAR = 365 * 86_400
DAY = 86_400


class Shy(Exception):
    def __str__(self) -> str:
        raise RuntimeError


async def drained(bench: Bench, verdicts: Sequence[BaseException]) -> list[int]:
    """A message for each, of the orgs `0`, `1`, ..., after one run that delivered each once."""

    @bench.worker.handler("m", retry=Retry(base=3600, cap=3600))
    async def m(args: dict[str, int], ctx: Context) -> None:
        raise verdicts[args["n"]]

    ids = [
        bench.put({"method": "m", "args": {"n": n}, "org": str(n)}) for n in range(len(verdicts))
    ]
    assert (await bench.run()).reason == "idle"
    assert len(bench.said(HandlerEnded)) == len(ids)
    assert {event.result for event in bench.said(SettleAnswered)} == {"applied"}
    return ids


async def test_any_reason_of_a_dead_message_is_stored(bench: Bench) -> None:
    reasons: dict[Any, str] = {
        "bad\x00": "bad\\x00",
        "bad\ud800": "bad\\ud800",
        "x" * 100_000: "x" * 1000,
        7: "7",
        Shy(): "Shy",
        "": "dead",
    }
    ids = await drained(bench, [Dead(reason) for reason in reasons])
    assert [bench.where(msg_id) for msg_id in ids] == [["dead"]] * len(ids)
    kept = bench.connection.execute("select reason from fairlease.dead_letters order by msg_id")
    assert [row[0] for row in kept] == list(reasons.values())


async def test_any_text_of_an_exception_is_stored(bench: Bench) -> None:
    ids = await drained(bench, [ValueError("\x00"), ValueError("\ud800"), ValueError("x" * 10**6)])
    assert [bench.where(msg_id) for msg_id in ids] == [["queue"]] * len(ids)
    kept = bench.connection.execute(
        "select last_error from fairlease.message_state order by msg_id"
    ).fetchall()
    assert [text.strip()[-6:] for (text,) in kept] == [": \\x00", "\\ud800", "xxxxxx"]
    assert all(len(text) <= 8_000 for (text,) in kept)


async def test_a_retry_after_any_time_is_a_counted_retry_within_the_cap(bench: Bench) -> None:
    waits: dict[Any, float] = {
        60: 60,
        "60": 60,
        10**400: 3600,
        datetime(9999, 12, 31, tzinfo=UTC): 3600,
        # What says no time leaves the delay to the policy.
        float("nan"): 3600,
        "soon": 3600,
        "-5": 3600,
    }
    ids = await drained(bench, [Retry(after=after) for after in waits])
    for msg_id, most in zip(ids, waits.values(), strict=True):
        assert most / 10_000 < bench.seconds_to_wait(msg_id) <= most
    assert bench.value("select sum(uncounted) from fairlease.message_state") == 0


async def test_a_retry_after_a_time_that_is_over_comes_at_once_until_attempts_are_used_up(
    bench: Bench,
) -> None:
    @bench.worker.handler("m", retry=Retry(max_attempts=3))
    async def m(args: dict[str, int], ctx: Context) -> None:
        raise Retry(after=-5)

    msg_id = bench.put({"method": "m"})
    await bench.run()
    assert bench.where(msg_id) == ["dead"]
    assert [event.attempt for event in bench.said(HandlerEnded)] == [1, 2, 3]


async def test_a_snooze_until_any_time_does_not_spin_and_is_not_counted(bench: Bench) -> None:
    waits: dict[Any, float] = {
        -5: 1,
        0: 1,
        datetime(1970, 1, 1, tzinfo=UTC): 1,
        10**400: YEAR,
        timedelta.max: YEAR,
        datetime(9999, 12, 31, tzinfo=UTC): YEAR,
    }
    ids = await drained(bench, [Snooze(until) for until in waits])
    for msg_id, seconds in zip(ids, waits.values(), strict=True):
        assert bench.seconds_to_wait(msg_id) <= seconds
        assert seconds == 1 or bench.seconds_to_wait(msg_id) > seconds - 60
    assert bench.value("select sum(uncounted) from fairlease.message_state") == len(ids)


async def test_a_snooze_that_says_no_time_is_a_counted_failure_that_names_it(bench: Bench) -> None:
    untils: list[Any] = [float("nan"), "soon", None]
    await drained(bench, [Snooze(until) for until in untils])
    kept = bench.connection.execute(
        "select uncounted, last_error from fairlease.message_state order by msg_id"
    ).fetchall()
    for until, (uncounted, error) in zip(untils, kept, strict=True):
        assert uncounted == 0
        assert f"Snooze: until={until!r} says no time" in error


async def test_a_rate_limit_of_any_retry_after_keeps_its_org_out_and_for_a_day_at_most(
    bench: Bench,
) -> None:
    waits: dict[Any, float] = {
        "120": 120,
        120: 120,
        "9" * 300: DAY,
        10**400: DAY,
        "Fri, 31 Dec 9999 23:59:59 GMT": DAY,
        "Thu, 01 Jan 1970 00:00:00 GMT": 1,
        -5: 1,
        # What says no time is a minute.
        None: 60,
        "-5": 60,
        "soon": 60,
        "Tue, 99 Dec 2026 25:61:61 GMT": 60,
        float("nan"): 60,
    }
    ids = await drained(bench, [RateLimited(after, reason="no\x00\ud800") for after in waits])
    for n, (msg_id, seconds) in enumerate(zip(ids, waits.values(), strict=True)):
        assert bench.seconds_to_wait(msg_id) <= seconds
        circuit = bench.connection.execute(
            "select extract(epoch from open_until - now())::float8, reason from fairlease.circuits"
            " where org = %s",
            [str(n)],
        ).fetchone()
        assert circuit is not None
        assert circuit[0] <= seconds
        assert circuit[1] == "no\\x00\\ud800"
        if seconds > 1:
            assert min(bench.seconds_to_wait(msg_id), circuit[0]) > seconds - 30
