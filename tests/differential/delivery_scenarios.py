"""One short sequence for each rule about deliveries and circuits."""

from __future__ import annotations

from .replay import Advance, Heartbeat, Send, Settle, Step
from .shorthand import DAY_MS, ask, many, settle, take
from .values import UNTOLD, Claim

DELIVERIES: dict[str, list[Step]] = {
    "an old delivery settles nothing": [
        many(1), ask(sleep_seconds=5), Advance(5000), take("h2"), settle((1, "done", 0)),
        settle((1, "dead", 0)), settle((1, "retry", 0)), Heartbeat((1,)), settle((0, "done", 0)),
    ],
    "a delivery settled again is not counted again": [
        many(1), take(), settle((0, "snooze", 0)), settle((0, "snooze", 0)),
        settle((0, "done", 0)), take(),
        settle((0, "retry", 0)), settle((0, "retry", 0)), take(), settle((0, "done", 0)),
        settle((0, "done", 0)), settle((0, "retry", 0)),
    ],
    "settling needs no live slot, and no slot of one's own": [
        many(2), ask(n=2, lease_ttl_seconds=10), Advance(20_000),
        settle((0, "done", 0), holder="h2"),
        settle((0, "retry", 0), (1, "retry", 0)),
    ],
    "a retry counts, a snooze and a give-back do not": [
        many(1), take(), settle((0, "retry", 0)), take(), settle((0, "snooze", 1000)), take(),
        Advance(1000),
        take(), settle((0, "give_back", 9000)), take(), settle((0, "retry", 0)), take(),
    ],
    "outcomes and the next claim come in one round": [
        many(6), ask(n=3),
        Settle(Claim(n=2, pin_org="a"), ((0, "done", 0), (1, "retry", 0), (2, "dead", 0))),
        Settle(Claim(n=9), ((0, "give_back", 0), (1, "snooze", 5000))),
    ],
    "one bad outcome does not undo its neighbours": [
        many(3), ask(n=3), settle((0, "done", 0), (1, "explode", 0), (2, "retry", -5)), take(),
    ],
    "a heartbeat hides what is still running": [
        many(2), ask(n=2, sleep_seconds=5), Advance(4000), Heartbeat((0, 1), sleep_seconds=5),
        Advance(4000), take("h2"), Advance(1000), take("h2"), Heartbeat((0, 1, 2), sleep_seconds=5),
    ],
    "a late heartbeat does not hide what was given back": [
        many(2), ask(n=2), settle((0, "give_back", 0), (1, "retry", 0)),
        Heartbeat((0, 1), sleep_seconds=90),
        take("h2", n=2),
    ],
    "a heartbeat extends deliveries though the slot has lapsed": [
        many(1), ask(sleep_seconds=30, lease_ttl_seconds=10), Advance(10_000),
        Heartbeat((0,), sleep_seconds=30), Advance(25_000), take("h2"),
    ],
    "a handler that began and never ended is a crash": [
        many(1), ask(sleep_seconds=5), Heartbeat((0,), sleep_seconds=5), Advance(5000),
        take(sleep_seconds=5),
        Heartbeat((0,), sleep_seconds=5), Heartbeat((0,), sleep_seconds=5), Advance(5000),
        take(sleep_seconds=5), Heartbeat((0,), sleep_seconds=5), Advance(5000),
        take(sleep_seconds=5),
        Heartbeat((0,), sleep_seconds=5), settle((0, "retry", 0)), take(),
    ],
    "a claim whose answer was lost is no crash": [
        many(1), ask(sleep_seconds=5), Advance(5000), take(sleep_seconds=5), Advance(5000),
        take(sleep_seconds=5), settle((0, "retry", 0)), take(),
    ],
    "a delivery that was settled is no crash": [
        many(1), ask(sleep_seconds=5), settle((0, "retry", 0)), take(sleep_seconds=5),
        Heartbeat((0,), sleep_seconds=5), Advance(5000), take(sleep_seconds=5),
        Heartbeat((0,), sleep_seconds=5), Advance(5000), take(),
    ],
    "done leaves the queue as its policy says": [
        many(2), many(2, "a", "beta"), ask(n=2), settle((0, "done", 0), (1, "dead", 0)),
        ask(queue="beta", n=2), settle((0, "done", 0), (1, "dead", 0), queue="beta"),
    ],
    "what left the queue forgets its counts": [
        Send(("a", "a"), keys=("k", "l")), take(n=2), settle((0, "snooze", 0), (1, "snooze", 0)),
        take(n=2), settle((0, "dead", 0)), settle((1, "done", 0)), Send(("a",), keys=("k",)),
        take(),
    ],
    "a key is unique while its message is live": [
        Send(("a", "b", "a"), keys=("k", "k", "l")), Send(("a",), "beta", ("k",)), take(n=3),
        Send(("a",), keys=("k",)), settle((0, "done", 0), (1, "dead", 0)),
        Send(("a", "a"), keys=("k", "l")),
        settle((1, "snooze", 0)), Send(("c", "c"), keys=("l", None)),
    ],
}  # fmt: skip

CIRCUITS: dict[str, list[Step]] = {
    "an open circuit keeps its org out": [
        Send(("a",) * 4 + ("b",)), ask(), settle((0, "retry", 0), limit_ms=60_000),
        take("h2", pin_org="a"), take("h2"),
        take("h3"), Advance(59_999), take("h3"), Advance(1), take("h3"),
    ],
    "a half-open circuit lets one message through": [
        many(9), ask(), settle((0, "retry", 0), limit_ms=2000), Advance(2000), take("h2", n=5),
        take("h3", n=5),
        settle((0, "done", 0)), take("h3", n=5),
    ],
    "the probe decides, and nothing else": [
        many(9), ask(n=3), settle((0, "retry", 0), limit_ms=2000), Advance(2000), take("h2"),
        settle((2, "done", 0)), take("h3"), settle((3, "retry", 0), (0, "snooze", 0)), take("h2"),
        settle((0, "retry", 0)), take("h3", n=5),
    ],
    "a probe that is snoozed or given back frees its place": [
        many(9), ask(), settle((0, "retry", 0), limit_ms=2000), Advance(2000), take("h2"),
        settle((0, "give_back", 0)), take("h2"), settle((0, "snooze", 0)), take("h2"),
        take("h2"),
    ],
    "a probe that dies frees its place with its visibility": [
        many(9), ask("h2"), settle((0, "retry", 0), limit_ms=2000), Advance(2000),
        take("h2", sleep_seconds=5), Advance(4000), Heartbeat((0,), holder="h2", sleep_seconds=5),
        Advance(4999), take("h2"), Advance(1), take("h2"),
    ],
    "one incident is one trip": [
        many(9), ask(n=3), Advance(10), settle((0, "retry", 0), limit_ms=2000),
        settle((1, "retry", 0), limit_ms=3000), Advance(10), settle((2, "retry", 0), limit_ms=1000),
        Advance(2990), take("h2"), settle((0, "retry", 0), limit_ms=2000), Advance(3999),
        take("h2"),
        Advance(1), take("h2"),
    ],
    "trips double and a quiet day forgets them": [
        many(20),
        *(step for _ in range(3) for step in (
            take(), Advance(1), settle((0, "retry", 0), limit_ms=60_000), Advance(240_000),
        )),
        take(), settle((0, "done", 0)), Advance(DAY_MS), take(), Advance(1),
        settle((0, "retry", 0), limit_ms=60_000),
        Advance(60_000), take(), Advance(1), settle((0, "retry", 0), limit_ms=DAY_MS),
        Advance(DAY_MS - 1), take(),
        Advance(1), take(),
    ],
    "a limit that says no time opens for a minute": [
        many(9), ask(), settle((0, "retry", 0), limit_ms=UNTOLD), Advance(59_999), take("h2"),
        Advance(1), take("h2"),
    ],
}  # fmt: skip
