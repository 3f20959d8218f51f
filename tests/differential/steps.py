"""Random steps: few names and small numbers, so that they meet."""

from __future__ import annotations

from hypothesis import strategies as st

from .replay import (
    QUEUES,
    Advance,
    Ask,
    Heartbeat,
    Limit,
    Release,
    Renew,
    Send,
    Settle,
    Step,
)
from .values import UNTOLD, Claim, Limits

DAY_MS = 24 * 3600 * 1000
queues = st.sampled_from([*QUEUES, "alpha", "alpha"])
holders = st.sampled_from(["h1", "h2", "h3", "h4"])
orgs = st.sampled_from(["a", "a", "b", "b", "c", "B", None])
pins = st.sampled_from([None, None, None, None, "a", "b", "A"])
keys = st.sampled_from([None, None, None, None, "k1", "k2"])
sleeps = st.sampled_from([30, 30, 5, 0, 90])
leases = st.sampled_from([60, 60, 10])
back = st.integers(0, 5)

asks = st.builds(
    Claim,
    queue=queues,
    holder=holders,
    n=st.integers(1, 4),
    sleep_seconds=sleeps,
    lease_ttl_seconds=leases,
    max_per_org=st.integers(1, 3),
    global_cap=st.sampled_from([1, 2, 3, 8]),
    pin_org=pins,
)
bad_asks = st.builds(
    Claim,
    queue=st.sampled_from(["alpha", "nowhere"]),
    holder=st.sampled_from(["h1", ""]),
    n=st.sampled_from([1, 0, -1, None]),
    sleep_seconds=st.sampled_from([5, -1]),
    lease_ttl_seconds=st.sampled_from([5, 0]),
    max_per_org=st.sampled_from([2, 0, -1]),
    global_cap=st.sampled_from([2, 0]),
    pin_org=st.sampled_from([None, "", "a"]),
)
verbs = st.sampled_from(["done", "done", "retry", "retry", "snooze", "give_back", "dead"])
delays_ms = st.sampled_from([0, 0, 1500, 40_000])

sends = st.builds(
    lambda queue, items, delay: Send(
        tuple(org for org, _ in items), queue, tuple(key for _, key in items), delay
    ),
    queues,
    st.lists(st.tuples(orgs, keys), min_size=2, max_size=7),
    st.sampled_from([0, 0, 0, 20]),
)
settles = st.builds(
    Settle,
    st.one_of(asks, st.builds(Claim, queue=queues, holder=holders, n=st.just(0))),
    st.lists(st.tuples(back, verbs, delays_ms), max_size=4).map(tuple),
    st.sampled_from([None, None, None, None, 2000, 0, UNTOLD]),
)
limits = st.builds(
    Limit,
    st.sampled_from(["a", "a", "B"]),
    st.builds(
        Limits,
        max_per_org=st.sampled_from([None, None, 0, 1, 2]),
        starts_per_minute=st.sampled_from([None, 7, 7, 30]),
        burst=st.integers(1, 3),
        paused=st.sampled_from([False, False, False, True]),
    ),
)
heartbeats = st.builds(
    Heartbeat, st.lists(back, max_size=3).map(tuple), holders, queues, leases, sleeps
)
advances = st.builds(
    Advance, st.sampled_from([1, 1000, 4000, 5000, 10_000, 30_000, 60_000, DAY_MS])
)

WEIGHTS: tuple[tuple[int, st.SearchStrategy[Step]], ...] = (
    (11, sends),
    (9, st.builds(Ask, asks)),
    (14, settles),
    (4, heartbeats),
    (8, advances),
    (4, limits),
    (2, st.builds(Renew, holders, queues, leases)),
    (2, st.builds(Release, holders, queues)),
    (1, st.builds(Ask, bad_asks)),
    (1, st.builds(Settle, bad_asks)),
)
# Drawn by place in a list: nested choices would be flattened, and bad arguments drown the rest.
URN = [strategy for weight, strategy in WEIGHTS for _ in range(weight)]
steps: st.SearchStrategy[Step] = st.sampled_from(URN).flatmap(lambda strategy: strategy)
sequences = st.lists(steps, min_size=15, max_size=40)
