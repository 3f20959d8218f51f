"""One short sequence for each rule. Its name is the rule; a planted fault names it as red."""

from __future__ import annotations

from .delivery_scenarios import CIRCUITS, DELIVERIES
from .replay import Advance, Heartbeat, Limit, Release, Renew, Send, Step
from .shorthand import ask, many, settle, take
from .values import Limits

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

SCENARIOS = SLOTS | ORGS | DELIVERIES | CIRCUITS
