"""Whatever happens between a worker and its database: the right branch of the error tree, a word
about whether the call took effect that is never wrong, within the deadline, and life goes on."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from contract.api import KEY, gateway
from fairlease.errors import (
    RpcError,
    TransientError,
    Unauthorized,
    UnexpectedAnswer,
)
from fairlease.local.gateway import Fault, FaultKind, Faults
from fairlease.model import ClaimRequest, ClaimStatus, Delivery, Done, NewMessage
from fairlease.transports.postgrest import PostgrestRpc

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from fairlease.local.postgres import LocalPostgres

QUEUE = "faults"
SOON = 10.0
# Shorter than any wait of a fault below, long enough for a call on a busy machine.
DEADLINE = 0.5
NEVER = 30.0

LOST_ANSWERS = [
    *(Fault(FaultKind.HTML, status=s) for s in (500, 502, 503, 504, 520, 522, 524, 408)),
    *(Fault(FaultKind.EMPTY, status=s) for s in (500, 502, 503)),
    *(Fault(FaultKind.HTML_AFTER, status=s) for s in (502, 504)),
    Fault(FaultKind.EMPTY_AFTER, status=502),
    Fault(FaultKind.HTML, status=200),
    Fault(FaultKind.EMPTY, status=200),
    Fault(FaultKind.EMPTY_AFTER, status=200),
    Fault(FaultKind.CUT),
    Fault(FaultKind.BROKEN_JSON),
    Fault(FaultKind.RESET_BEFORE),
    Fault(FaultKind.RESET_AFTER),
]
TOO_SLOW = [
    Fault(FaultKind.HANG),
    Fault(FaultKind.DELAY, seconds=NEVER),
    Fault(FaultKind.SLOW, seconds=NEVER),
]
ANSWERS = [
    (Fault(FaultKind.JWT_ISSUED_AT_FUTURE), TransientError),
    (Fault(FaultKind.HTML, status=429), TransientError),
    (Fault(FaultKind.HTML, status=401), Unauthorized),
    (Fault(FaultKind.HTML, status=403), Unauthorized),
    (Fault(FaultKind.HTML, status=404), UnexpectedAnswer),
    (Fault(FaultKind.HTML, status=413), UnexpectedAnswer),
    (Fault(FaultKind.HTML, status=302), UnexpectedAnswer),
]


def named(fault: Fault) -> str:
    return f"{fault.kind}-{fault.status}"


@pytest.fixture(scope="module")
def switch() -> Faults:
    return Faults()


@pytest.fixture(scope="module")
def url(postgres: LocalPostgres, module_database: str, switch: Faults) -> Iterator[str]:
    with psycopg.connect(module_database, autocommit=True) as session:
        session.execute("select fairlease.attach_queue(%s)", [QUEUE])
    with gateway(postgres, module_database, switch) as found:
        yield found


@pytest.fixture
def faults(switch: Faults) -> Iterator[Faults]:
    yield switch
    switch.clear()


@pytest.fixture
def session(module_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(module_database, autocommit=True) as session:
        yield session


@pytest.fixture
def queue(session: psycopg.Connection) -> str:
    """Empty, and nobody holds a slot."""
    session.execute("select pgmq.purge_queue(%s)", [QUEUE])
    session.execute(
        "select fairlease.vacate(seat, 'released', now()) from fairlease.seats"
        " where holder is not null"
    )
    return QUEUE


@pytest.fixture
async def far(url: str, queue: str) -> AsyncIterator[PostgrestRpc]:
    rpc = PostgrestRpc(url, KEY)
    yield rpc
    await rpc.aclose()


def asking(queue: str, n: int = 10) -> ClaimRequest:
    return ClaimRequest(queue, "h/1", n, 60, 60, 2, 8)


def every_call(rpc: PostgrestRpc, queue: str, seconds: float) -> dict[str, Callable[[], Any]]:
    """One call of each function; each takes effect only once, or says that it did not."""
    soon = {"timeout_seconds": seconds}
    return {
        "claim_org_slot_and_read": lambda: rpc.claim_org_slot_and_read(asking(queue), **soon),
        "settle_and_claim": lambda: rpc.settle_and_claim(
            asking(queue, 0), [Done(Delivery(1, 1))], **soon
        ),
        "heartbeat_org_slot": lambda: rpc.heartbeat_org_slot(queue, "h/1", 60, 60, [], **soon),
        "renew_org_slot": lambda: rpc.renew_org_slot(queue, "h/1", 60, **soon),
        "release_org_slot": lambda: rpc.release_org_slot(queue, "h/1", **soon),
        "send_messages": lambda: rpc.send_messages(queue, [NewMessage({})], **soon),
        "send_batch": lambda: rpc.send_batch(queue, [{}], **soon),
        "archive": lambda: rpc.archive(queue, 1, **soon),
    }


async def failure(call: Callable[[], Awaitable[Any]]) -> RpcError:
    with pytest.raises(RpcError) as raised:
        await call()
    assert len(str(raised.value)) <= 200
    return raised.value


def in_queue(session: psycopg.Connection, queue: str) -> int:
    row = session.execute(f"select count(*) from pgmq.q_{queue}").fetchone()
    return row[0] if row else -1


@pytest.mark.parametrize("fault", LOST_ANSWERS, ids=named)
async def test_an_answer_that_is_lost_leaves_every_call_unknown(
    far: PostgrestRpc, queue: str, faults: Faults, fault: Fault
) -> None:
    for name, call in every_call(far, queue, SOON).items():
        faults.add(fault)
        error = await failure(call)
        assert type(error) is TransientError, name
        assert error.took_effect is None, name
        assert not faults.active(), name
    assert await far.send_batch(queue, [{}], timeout_seconds=SOON)


@pytest.mark.parametrize("fault", TOO_SLOW, ids=named)
async def test_the_deadline_is_of_the_whole_call_and_the_next_call_is_fast(
    far: PostgrestRpc, queue: str, faults: Faults, fault: Fault
) -> None:
    faults.add(fault)
    begun = time.monotonic()
    error = await failure(lambda: far.send_batch(queue, [{}], timeout_seconds=DEADLINE))
    assert type(error) is TransientError
    assert error.took_effect is None
    assert await far.send_batch(queue, [{}], timeout_seconds=SOON)
    assert DEADLINE <= time.monotonic() - begun < NEVER / 3


@pytest.mark.parametrize(("fault", "branch"), ANSWERS, ids=lambda v: getattr(v, "kind", ""))
async def test_an_answer_in_the_databases_place_has_its_branch(
    far: PostgrestRpc, queue: str, faults: Faults, fault: Fault, branch: type[RpcError]
) -> None:
    for name, call in every_call(far, queue, SOON).items():
        faults.add(fault)
        error = await failure(call)
        assert type(error) is branch, name
        assert not isinstance(error, TransientError) or error.took_effect is False, name
    assert await far.send_batch(queue, [{}], timeout_seconds=SOON)


@pytest.mark.parametrize("fault", [f for f, _ in ANSWERS] + LOST_ANSWERS, ids=named)
async def test_what_is_said_about_the_effect_is_never_wrong(
    far: PostgrestRpc, queue: str, faults: Faults, fault: Fault, session: psycopg.Connection
) -> None:
    faults.add(fault)
    error = await failure(lambda: far.send_batch(queue, [{}], timeout_seconds=SOON))
    took_effect = in_queue(session, queue) == 1
    if isinstance(error, TransientError):
        assert error.took_effect in (None, took_effect)
    else:
        assert not took_effect
    assert took_effect == (
        fault.kind in {"html_after", "empty_after", "cut", "broken_json", "reset_after"}
    )


async def test_a_late_answer_within_the_deadline_is_an_answer(
    far: PostgrestRpc, queue: str, faults: Faults
) -> None:
    for kind in (FaultKind.DELAY, FaultKind.SLOW):
        faults.add(Fault(kind, seconds=0.3))
        assert await far.send_batch(queue, [{}], timeout_seconds=SOON)


async def test_a_connection_that_was_closed_while_idle_is_not_used_again(
    far: PostgrestRpc, queue: str, faults: Faults
) -> None:
    faults.add(Fault(FaultKind.CLOSE_IDLE, times=3))
    for _ in range(4):
        assert await far.send_batch(queue, [{}], timeout_seconds=SOON)
        await asyncio.sleep(0.05)


async def test_a_set_that_is_cut_at_max_rows_is_no_error_and_the_object_is_never_cut(
    far: PostgrestRpc, queue: str, faults: Faults
) -> None:
    await far.send_messages(queue, [NewMessage({}, org="a")] * 6, timeout_seconds=SOON)
    faults.add(Fault(FaultKind.MAX_ROWS, rows=2, times=2))
    cut = await far.claim_org_slot_and_read(asking(queue, 3), timeout_seconds=SOON)
    whole = await far.settle_and_claim(asking(queue, 3), [], timeout_seconds=SOON)
    assert (len(cut.messages), len(whole.messages)) == (2, 3)


async def test_a_batch_of_which_not_every_id_comes_back_is_unknown(
    far: PostgrestRpc, queue: str, faults: Faults
) -> None:
    faults.add(Fault(FaultKind.MAX_ROWS, rows=2))
    error = await failure(lambda: far.send_batch(queue, [{}, {}, {}], timeout_seconds=SOON))
    assert type(error) is TransientError


async def test_a_deadline_leaves_the_calls_beside_it_alone(
    far: PostgrestRpc, queue: str, faults: Faults
) -> None:
    """The client is retired, and closes with its last call."""
    faults.add(Fault(FaultKind.HANG, rpc="renew_org_slot"))
    faults.add(Fault(FaultKind.DELAY, rpc="send_batch", seconds=2 * DEADLINE))
    hung, beside = await asyncio.gather(
        far.renew_org_slot(queue, "h/1", 60, timeout_seconds=DEADLINE),
        far.send_batch(queue, [{}], timeout_seconds=SOON),
        return_exceptions=True,
    )
    assert type(hung) is TransientError
    assert isinstance(beside, list), beside


async def test_a_call_that_is_cancelled_leaves_a_client_that_works(
    far: PostgrestRpc, queue: str, faults: Faults
) -> None:
    for _ in range(12):
        faults.add(Fault(FaultKind.HANG))
        call = asyncio.create_task(far.send_batch(queue, [{}], timeout_seconds=SOON))
        await asyncio.sleep(0.02)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    faults.clear()
    assert await far.send_batch(queue, [{}], timeout_seconds=SOON)


async def test_more_calls_than_connections_wait_for_each_other(url: str, queue: str) -> None:
    rpc = PostgrestRpc(url, KEY, connections=2)
    calls = [rpc.send_batch(queue, [{}], timeout_seconds=SOON) for _ in range(30)]
    sent = await asyncio.gather(*calls)
    await rpc.aclose()
    assert len({ids[0] for ids in sent}) == 30


async def test_a_gateway_that_is_not_there_certainly_did_nothing() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        rpc = PostgrestRpc(f"http://127.0.0.1:{taken.getsockname()[1]}", KEY)
        for call in every_call(rpc, "q", SOON).values():
            error = await failure(call)
            assert isinstance(error, TransientError)
            assert error.took_effect is False
        await rpc.aclose()


async def test_a_server_that_accepts_and_never_answers_costs_one_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        rpc = PostgrestRpc(f"http://127.0.0.1:{silent.getsockname()[1]}", KEY)
        error = await failure(lambda: rpc.archive("q", 1, timeout_seconds=0.2))
        await rpc.aclose()
    assert isinstance(error, TransientError)
    assert error.took_effect is None


async def test_an_empty_claim_is_no_empty_body(far: PostgrestRpc, queue: str) -> None:
    answer = await far.claim_org_slot_and_read(asking(queue), timeout_seconds=SOON)
    assert answer.status is ClaimStatus.NO_DEMAND
