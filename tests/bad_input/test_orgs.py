"""Any text can be an org: it is sent, claimed, capped, limited and settled as one, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bad_input.bench import QUEUE
from fairlease import Context, Dead, NewMessage, RateLimited
from fairlease.messages.org import fold_org
from fairlease.messages.sending import send
from fairlease.model import ClaimRequest, ClaimStatus

if TYPE_CHECKING:
    from bad_input.bench import Bench

#: Each beside its neighbour: what is nearly the same is another org.
ORGS = [
    "x" * 10_000,
    "x" * 9_999 + "y",
    "\U0001f600" * 2_500,
    "it's",
    'a"b',
    "a/b",
    "a%2Fb",
    "a&b=c",
    "{a,b}",
    "a\\b",
    "acme ",
    "acme",
    "\u00e9",
    "e\u0301",
    "\U0001f600\u200d\U0001f680",
    "\u05e9\u05dc\u05d5\u05dd",
    "\u202eevil",
    "\n\t",
    "$1; drop table pgmq.meta; --",
    "%s %(a)s :a {a}",
    "(unresolved)",
]


async def test_every_org_is_sent_claimed_and_settled_under_its_own_name(bench: Bench) -> None:
    ran: dict[str, list[int]] = {}

    @bench.worker.handler("m")
    async def m(args: dict[str, int], ctx: Context) -> None:
        ran.setdefault(ctx.org, []).append(args["n"])
        if args["n"] == 2:
            raise Dead("last")

    rpc = bench.connect()
    body = {"method": "m"}
    await send(
        rpc,
        QUEUE,
        [NewMessage({**body, "args": {"n": n}}, org=org) for n in range(3) for org in ORGS],
    )
    await rpc.aclose()
    assert (await bench.run()).reason == "idle"

    assert set(ran) == {fold_org(org) for org in ORGS}
    assert len(ran) == len(ORGS)
    assert all(sorted(numbers) == [0, 1, 2] for numbers in ran.values())
    archived = bench.connection.execute(
        f"select headers->>'x-org', count(*) from pgmq.a_{QUEUE} group by 1"
    ).fetchall()
    assert dict(archived) == dict.fromkeys(ORGS, 2)
    dead = bench.connection.execute("select org, count(*) from fairlease.dead_letters group by 1")
    assert dict(dead.fetchall()) == {fold_org(org): 1 for org in ORGS}


@pytest.mark.parametrize("org", [ORGS[0], 'it\'s "a/b" \U0001f600 \u202eevil'], ids=["long", "odd"])
async def test_the_cap_of_a_hard_org_holds_pinned_and_not(bench: Bench, org: str) -> None:
    rpc = bench.connect()
    await send(rpc, QUEUE, [NewMessage({"method": "m"}, org=org)] * 6)

    def asking(holder: str, pin: str | None = None) -> ClaimRequest:
        return ClaimRequest(QUEUE, holder, 2, 60, 60, 1, 8, pin)

    soon: Any = {"timeout_seconds": 10}
    first = await rpc.settle_and_claim(asking("h/1"), [], **soon)
    assert (first.org, len(first.messages)) == (fold_org(org), 2)
    other = await rpc.settle_and_claim(asking("h/2"), [], **soon)
    assert (other.status, other.messages) == (ClaimStatus.ORG_CAPACITY, ())
    pinned = await rpc.settle_and_claim(asking("h/3", first.org), [], **soon)
    assert pinned.messages == ()
    more = await rpc.settle_and_claim(asking("h/1", first.org), [], **soon)
    assert len(more.messages) == 2
    await rpc.aclose()


async def test_the_circuit_of_a_hard_org_is_its_own(bench: Bench) -> None:
    limited, ran = fold_org(ORGS[0]), []

    @bench.worker.handler("m")
    async def m(args: dict[str, int], ctx: Context) -> None:
        ran.append(ctx.org)
        if ctx.org == limited:
            raise RateLimited(600)

    for org in ORGS[:4] * 2:
        bench.put({"method": "m", "org": org})
    bench.knobs["drain_concurrency"] = 1
    await bench.run()
    assert ran.count(limited) == 1
    assert sorted(set(ran)) == sorted(fold_org(org) for org in ORGS[:4])
    assert len(ran) == 7
    assert bench.connection.execute("select org from fairlease.circuits").fetchall() == [(limited,)]
