"""Each fault as a plain client sees it, and whether the call took effect."""

from __future__ import annotations

import errno
import http.client
import json
import random
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from fairlease.errors import ConfigurationError
from fairlease.local.gateway import Fault, FaultKind, Faults, running_gateway
from gateway.base_state import ADMIN_TOKEN, recorded_config
from gateway.runner import Client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.base_state import BaseState

SETUP = """
create table public.log (id int);
create function public.note(a int) returns int language sql
  as 'insert into public.log values (a) returning id';
create function public.numbers() returns setof int language sql stable
  as 'select generate_series(1, 5)';
grant all on public.log to anon;
"""
JSON = {"Content-Type": "application/json"}
ADMIN = {"Authorization": f"Bearer {ADMIN_TOKEN}", **JSON}


@pytest.fixture(scope="module")
def faults() -> Faults:
    return Faults(random.Random(1))


@pytest.fixture(scope="module")
def url(base_state: BaseState, faults: Faults) -> Iterator[str]:
    base_state.reset()
    base_state.session.execute(SETUP)
    with running_gateway(recorded_config(base_state, faults=faults)) as address:
        yield address


@pytest.fixture
def client(url: str, faults: Faults, base_state: BaseState) -> Iterator[Client]:
    faults.clear()
    base_state.session.execute("truncate public.log")
    sending = Client(url)
    yield sending
    sending.close()


def note(client: Client, patience_seconds: float = 10.0) -> tuple[int | None, bytes]:
    return client.send("POST", "/rest/v1/rpc/note", JSON, b'{"a": 7}', patience_seconds)


def noted(base_state: BaseState) -> int:
    row = base_state.session.execute("select count(*) from public.log").fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize("status", [502, 503, 504, 520, 200])
@pytest.mark.parametrize(("kind", "effect"), [("html", 0), ("html_after", 1)])
def test_html_page(
    status: int, kind: str, effect: int, client: Client, faults: Faults, base_state: BaseState
) -> None:
    faults.add(Fault(FaultKind(kind), status=status))
    answered, body = note(client)
    assert (answered, body[:6]) == (status, b"<html>")
    assert noted(base_state) == effect
    assert note(client) == (200, b"7")


@pytest.mark.parametrize(("kind", "effect"), [("empty", 0), ("empty_after", 1)])
def test_empty_body(
    kind: str, effect: int, client: Client, faults: Faults, base_state: BaseState
) -> None:
    faults.add(Fault(FaultKind(kind), status=500))
    assert note(client) == (500, b"")
    assert noted(base_state) == effect


@pytest.mark.parametrize(("kind", "effect"), [("reset_before", 0), ("reset_after", 1)])
def test_reset_is_one_of_tcp(
    kind: str, effect: int, client: Client, faults: Faults, base_state: BaseState
) -> None:
    faults.add(Fault(FaultKind(kind)))
    with pytest.raises(ConnectionResetError) as raised:
        note(client)
    # A connection that only ended would raise RemoteDisconnected, which has no number.
    assert raised.value.errno == errno.ECONNRESET
    assert noted(base_state) == effect


def test_cut_body_ends_before_its_length(
    client: Client, faults: Faults, base_state: BaseState
) -> None:
    faults.add(Fault(FaultKind.CUT))
    with pytest.raises(http.client.IncompleteRead):
        client.send("POST", "/rest/v1/rpc/numbers", JSON, b"{}")
    faults.add(Fault(FaultKind.CUT))
    client.close()
    with pytest.raises(http.client.IncompleteRead):
        note(client)
    assert noted(base_state) == 1


def test_broken_json_is_a_complete_answer(client: Client, faults: Faults) -> None:
    faults.add(Fault(FaultKind.BROKEN_JSON))
    status, body = client.send("POST", "/rest/v1/rpc/numbers", JSON, b"{}")
    assert status == 200
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(body)


def test_slow_body_comes_in_the_end(client: Client, faults: Faults) -> None:
    faults.add(Fault(FaultKind.SLOW, seconds=0.2))
    start = time.monotonic()
    answer = client.send("POST", "/rest/v1/rpc/numbers", JSON, b"{}")
    assert answer == (200, b"[1, 2, 3, 4, 5]")
    assert time.monotonic() - start >= 0.2


def test_hanging_call_is_never_answered_and_does_nothing(
    client: Client, faults: Faults, base_state: BaseState
) -> None:
    faults.add(Fault(FaultKind.HANG))
    assert note(client, patience_seconds=0.3) == (None, b"")
    assert noted(base_state) == 0


def test_delayed_call_takes_effect_though_nobody_waits(
    client: Client, faults: Faults, base_state: BaseState
) -> None:
    faults.add(Fault(FaultKind.DELAY, seconds=0.3))
    assert note(client, patience_seconds=0.1) == (None, b"")
    deadline = time.monotonic() + 10
    while not noted(base_state):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_idle_connection_is_closed_without_a_word(url: str, faults: Faults) -> None:
    faults.clear()
    faults.add(Fault(FaultKind.CLOSE_IDLE))
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        body = b'{"a": 7}'
        connection.sendall(
            b"POST /rpc/note HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        answer = b""
        while not answer.endswith(b"\r\n\r\n7"):
            answer += connection.recv(4096)
        assert b"connection: close" not in answer.lower()
        assert connection.recv(1) == b""


def test_rows_can_be_limited_for_one_call(client: Client, faults: Faults) -> None:
    faults.add(Fault(FaultKind.MAX_ROWS, rows=2, rpc="numbers"))
    answers = [client.send("POST", "/rest/v1/rpc/numbers", JSON, b"{}") for _ in range(2)]
    assert answers == [(200, b"[1, 2]"), (200, b"[1, 2, 3, 4, 5]")]


def test_platform_may_take_a_token_for_one_of_the_future_once(
    client: Client, faults: Faults, base_state: BaseState
) -> None:
    faults.add(Fault(FaultKind.JWT_ISSUED_AT_FUTURE))
    status, body = note(client)
    assert (status, json.loads(body)["code"]) == (401, "PGRST303")
    assert noted(base_state) == 0
    assert note(client)[0] == 200


def test_fault_hits_its_function_alone_and_as_often_as_told(client: Client, faults: Faults) -> None:
    faults.add(Fault(FaultKind.EMPTY, rpc="note", times=2))
    assert client.send("POST", "/rest/v1/rpc/numbers", JSON, b"{}")[0] == 200
    assert [note(client)[0] for _ in range(3)] == [502, 502, 200]


def test_switch_can_be_reached_over_http(client: Client, faults: Faults) -> None:
    def switch(method: str, headers: dict[str, str], body: Any = None) -> int | None:
        data = None if body is None else json.dumps(body).encode()
        return client.send(method, "/_gateway/faults", headers, data)[0]

    assert switch("POST", JSON, {"kind": "empty"}) == 401
    assert switch("POST", {**ADMIN, "Authorization": "Bearer wrong"}, {"kind": "empty"}) == 401
    assert switch("POST", ADMIN, {"kind": "no such fault"}) == 400
    assert switch("POST", ADMIN, [{"kind": "empty", "status": 503}, {"kind": "cut"}]) == 204
    assert faults.active() == [Fault(FaultKind.EMPTY, status=503), Fault(FaultKind.CUT)]
    assert note(client) == (503, b"")
    assert switch("DELETE", ADMIN) == 204
    assert faults.active() == []


def test_chance_decides_as_often_as_its_probability_says() -> None:
    dice = Faults(random.Random(5))
    dice.add(Fault(FaultKind.EMPTY, times=None, probability=0.25))
    hits = sum(dice.pick("any") is not None for _ in range(4000))
    assert hits == pytest.approx(1000, rel=0.1)


def test_chaos_spreads_evenly_over_every_kind() -> None:
    chaos = Faults(random.Random(5))
    chaos.add_chaos(0.5)
    picked = [chaos.pick("any") for _ in range(8000)]
    hits = [fault for fault in picked if fault is not None]
    assert len(hits) == pytest.approx(4000, rel=0.1)
    kinds = {(fault.kind, fault.status) for fault in hits}
    assert len(kinds) == len(chaos.active())
    for kind in kinds:
        share = sum((fault.kind, fault.status) == kind for fault in hits)
        assert share == pytest.approx(len(hits) / len(kinds), rel=0.25)


@pytest.mark.parametrize("wrong", [{"probability": 1.5}, {"times": 0}, {"seconds": -1.0}])
def test_impossible_fault_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Fault(FaultKind.EMPTY, **wrong)
