"""One short sequence for each rule. Its name is the rule; a planted fault names it as red."""

from __future__ import annotations

from typing import Any

from .replay import Advance, Ask, Heartbeat, Limit, Release, Renew, Send, Settle, Step
from .values import UNTOLD, Claim, Limits

HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS


def ask(holder: str = "h1", **rest: Any) -> Ask:
    return Ask(Claim(holder=holder, **rest))


def take(holder: str = "h1", **rest: Any) -> Settle:
    """A claim whose answer also tells causes, attempts and crashes."""
    return Settle(Claim(holder=holder, **rest))


def settle(*outcomes: tuple[int, str, int], limit_ms: int | None = None, **rest: Any) -> Settle:
    return Settle(Claim(n=0, **rest), outcomes, limit_ms)


def many(count: int, org: str = "a", queue: str = "alpha") -> Send:
    return Send((org,) * count, queue)


SLOTS: dict[str, list[Step]] = {
    "a pinned claim serves the pinned org or nothing": [
        Send(("a", "b")), take(pin_org="b"), take(pin_org="b"), take("h2", pin_org="z"),
        take("h1", pin_org="a"),
    ],
    "the fleet cap binds new slots, over all queues": [
        many(9), many(9, "b", "beta"), take("h1", global_cap=2),
        take("h2", queue="beta", global_cap=2),
        take("h3", global_cap=2), take("h4", queue="beta", global_cap=2), take("h3", global_cap=3),
    ],
    "the cap of an org binds new slots, over all queues": [
        many(9), many(9, "a", "beta"), take("h1", max_per_org=1),
        take("h2", queue="beta", max_per_org=1), take("h3", pin_org="a", max_per_org=1),
        take("h4", max_per_org=2), take("h2", queue="beta", max_per_org=2),
    ],
    "a holder keeps its one slot": [
        many(9), many(9, "b", "beta"), take(global_cap=1), take(global_cap=1),
        take(pin_org="a", global_cap=1),
        take(queue="beta", global_cap=1), Release(), Release(queue="beta"),
    ],
    "a claim moves the slot to another org": [
        Send(("a", "b", "b")), take(max_per_org=1), take(pin_org="b", max_per_org=1),
        take("h2", pin_org="b", max_per_org=1), take("h2", pin_org="a", max_per_org=1),
    ],
    "a lapsed slot frees its seat, not an instant before": [
        many(9), take(lease_ttl_seconds=10, global_cap=1), Advance(9_999),
        take("h2", global_cap=1, max_per_org=1), Advance(1),
        take("h2", global_cap=1, max_per_org=1),
        Advance(60_000),
    ],
    "a lapsed slot frees its ordinal": [
        many(9), take(lease_ttl_seconds=10, max_per_org=1), Advance(10_000),
        take("h2", max_per_org=1), take("h3", max_per_org=1),
    ],
    "a lapsed slot is not revived by a renewal": [
        many(3), ask(lease_ttl_seconds=10), Advance(10_000), Renew(), take("h2", global_cap=1),
    ],
    "a lapsed slot is not revived by a heartbeat": [
        many(3), ask(lease_ttl_seconds=10), Advance(10_000), Heartbeat((0,)),
        take("h2", global_cap=1),
    ],
    "a lapsed slot is not revived by a claim": [
        many(9), ask(lease_ttl_seconds=10), ask("h2", lease_ttl_seconds=90), Advance(10_000),
        take(global_cap=1), ask("h3", global_cap=2), take(global_cap=2),
    ],
    "a renewal extends from now": [
        many(9), ask(lease_ttl_seconds=60), Advance(10_000), Renew(ttl_seconds=60),
        Advance(50_000), take("h2", max_per_org=1), Renew(ttl_seconds=10), Advance(10_000),
        take("h2", max_per_org=1),
    ],
    "only the queue of the slot renews and releases it": [
        many(3), ask(), Renew(queue="beta"), Release(queue="beta"), Renew("h2"), Release("h2"),
        Heartbeat((), queue="beta"), Release(), Release(), Renew(),
    ],
    "seats above are counted against a lower cap": [
        many(9), ask("h1"), ask("h2", max_per_org=8), ask("h3", max_per_org=8), Release("h1"),
        take("h4", global_cap=2, max_per_org=8), take("h4", global_cap=3, max_per_org=8),
    ],
    "a pinned holder above a lowered cap drains": [
        many(20), *(ask(f"h{i}", max_per_org=8) for i in (1, 2, 3)),
        take("h3", global_cap=2, pin_org="a", max_per_org=8), Renew("h3"),
        take("h2", global_cap=2, pin_org="a", max_per_org=8),
    ],
    "an unpinned holder above a lowered cap moves down or gives up": [
        many(20), *(ask(f"h{i}", max_per_org=8) for i in (1, 2, 3)), Release("h1"),
        take("h3", global_cap=2, max_per_org=8), ask("h4", max_per_org=8),
        take("h4", global_cap=2, max_per_org=8), Renew("h4"),
    ],
    "ordinals above are counted against a lower cap": [
        many(20), *(ask(f"h{i}", max_per_org=8) for i in (1, 2, 3)), Release("h1"),
        take("h4", max_per_org=2), take("h3", max_per_org=2, pin_org="a"),
        take("h3", max_per_org=2),
    ],
    "an answer without messages leaves no new slot": [
        take(), Send(("a",), delay_seconds=20), take(), take(pin_org="a"), many(1, "b"),
        Limit("b", Limits(paused=True)), take(), Limit("b", Limits(max_per_org=0)), take(), Renew(),
    ],
    "an empty answer keeps the old slot as it was": [
        many(1), ask(lease_ttl_seconds=10), Advance(5000), take(), take(pin_org="b"),
        Advance(5000), Renew(),
    ],
    "a new claim sets the lease anew": [
        many(9), ask(lease_ttl_seconds=60), Advance(1000), ask(lease_ttl_seconds=10),
        Advance(10_000),
        Renew(), ask("h2", lease_ttl_seconds=10), Advance(9000), ask("h2", lease_ttl_seconds=10),
        Advance(9000), Renew("h2"),
    ],
}  # fmt: skip

ORGS: dict[str, list[Step]] = {
    "orgs take turns in byte order after the cursor": [
        Send(("a", "B", "c", "a", "b", "c", "a", "b", "c", "z")),
        *(step for _ in range(6) for step in (ask(), Release())),
    ],
    "an org with fewer slots goes first": [
        Send(("a",) * 6 + ("b",) * 6 + ("c",)), ask("h1", n=2), ask("h2"), ask("h3"),
        ask("h4", max_per_org=3), ask("h5", max_per_org=3), Release("h1"),
        ask("h6", max_per_org=3), Release("h3"), ask("h7", pin_org="b", max_per_org=8),
        ask("h8", max_per_org=8), ask("h9", max_per_org=8),
    ],
    "slots in other queues count for whose turn it is": [
        many(3, "a", "beta"), Send(("a", "b", "a", "b")), ask("h1", queue="beta"), ask("h2"),
        ask("h3"),
    ],
    "the holder's own slot does not put its org back": [
        many(6), ask("h1"), many(3, "b"), ask("h2", pin_org="b"), ask("h1"), ask("h1"),
    ],
    "a pinned claim leaves the cursor alone": [
        Send(("a", "a", "b", "b", "c", "c")), ask(), ask(pin_org="c"), Release(), ask("h2"),
        Release("h2"),
        ask("h3"),
    ],
    "within an org the first visible is read first": [
        many(4), ask(n=4), settle((0, "retry", 3000), (1, "retry", 1000), (2, "retry", 2000)),
        many(1), Advance(5000), ask(n=2), ask(n=3),
    ],
    "only what is visible is read": [
        Send(("a",), delay_seconds=20), Send(("a",)), ask(n=5), Advance(19_999), ask(n=5),
        Advance(1), ask(n=5), Advance(30_000), ask(n=5, sleep_seconds=0), ask(n=5),
    ],
    "a paused org is left alone": [
        Send(("a", "b")), Limit("A", Limits(paused=True)), take(pin_org="a"), take("h2"),
        take("h3"),
        Limit("a", Limits()), take("h3"),
    ],
    "a blocked org does not stop the others": [
        Send(("a", "a", "b", "c")), Limit("a", Limits(max_per_org=0)),
        Limit("b", Limits(paused=True)),
        take("h1"), take("h2"), take("h3"),
    ],
    "an org's own cap replaces the argument": [
        many(9), Limit("a", Limits(max_per_org=3)), take("h1", max_per_org=1),
        take("h2", max_per_org=1),
        take("h3", max_per_org=1), take("h4", max_per_org=8), Limit("a", Limits(max_per_org=1)),
        take("h1"), take("h2", pin_org="a"), take("h3"),
    ],
    "starts keep to the rate and the burst": [
        many(40), Limit("a", Limits(starts_per_minute=7, burst=3)), take(n=2), take(n=4), take(),
        Advance(8571), take(n=4), Advance(1), take(n=4), Advance(26_000), take(n=9),
        Advance(600_000), take(n=9), take("h2", pin_org="a"),
    ],
    "a rate does not drift in an hour": [
        Limit("a", Limits(starts_per_minute=7, burst=1)),
        *(step for _ in range(30) for step in (
            many(15), take(), Advance(8572), take(), Advance(8571), take(), Advance(1), take(),
            Advance(102_856), take(n=9),
        )),
    ],
    "a rate that changes keeps what is owed": [
        many(20), Limit("a", Limits(starts_per_minute=30, burst=3)), take(n=3), take(),
        Limit("a", Limits(starts_per_minute=7, burst=3)), Advance(2000), take(n=3),
        Advance(20_000), take(n=3),
    ],
    "an org is one whatever the case of its letters": [
        Send(("Acme", "ACME", "acme")), take(pin_org="aCMe", n=2), take("h2", max_per_org=1),
    ],
    "the org of a message is the first that is not empty": [
        Send((None,) * 8, bodies=(
            {"org": "a", "args": {"org": "b"}},
            {"org": "", "args": {"org": "B", "repository": "c/x"}},
            {"args": {"repository": "C/x/y"}}, {"args": {"repository_full_name": "d/y"}},
            {"args": {"repository": "/x"}}, {"args": 3}, {"org": " "}, {},
        )),
        Send(("e",), bodies=({"org": "f"},)),
        take(), take(), take(), take(), take(), take(), take(), take(), take(),
    ],
    "with nothing visible no_demand wins over full caps": [
        many(2), ask("h1", n=2, global_cap=1), take("h2", global_cap=1),
        take("h3", pin_org="a", global_cap=1),
    ],
    "a cap of zero stops claiming before anything is read": [
        take(global_cap=0), take(max_per_org=0), many(3), take(global_cap=-1),
        take(max_per_org=-1), take(),
        take(max_per_org=0), take(global_cap=0, pin_org="a"), Renew(),
    ],
    "bad arguments are refused by name": [
        many(2), ask(""), ask(n=0), ask(n=-1), ask(n=None), ask(sleep_seconds=-1),
        ask(lease_ttl_seconds=0), ask(pin_org=""), ask(queue="nowhere"), Renew(ttl_seconds=0),
        Renew(""),
        Release(""), Heartbeat((), holder=""), take(n=-1), take(""), take(sleep_seconds=-1),
    ],
    "a plain claim reads a hundred at most, a settling one 500": [
        many(310), many(310), ask(n=150), take(n=700), take(n=700),
    ],
}  # fmt: skip

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
        Send(("a",), keys=("k",)), take(), settle((0, "snooze", 0)), take(), settle((0, "dead", 0)),
        Send(("a",), keys=("k",)), take(),
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
        many(9), ask(n=2), settle((0, "retry", 0), limit_ms=2000), Advance(2000), take("h2"),
        settle((2, "done", 0)), take("h3"), settle((0, "retry", 0)), take("h3", n=5),
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

SCENARIOS = SLOTS | ORGS | DELIVERIES | CIRCUITS
