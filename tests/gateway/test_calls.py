"""PostgREST's rules by cases of our own: they run where the recorded ones are missing too."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from fairlease.local.gateway import running_gateway
from gateway.base_state import recorded_config
from gateway.own_calls import CALLS, SETUP
from gateway.runner import Admin, Client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.base_state import BaseState
    from gateway.own_calls import Call


@pytest.fixture(scope="module")
def client(base_state: BaseState) -> Iterator[Client]:
    base_state.reset()
    base_state.session.execute(SETUP)
    with running_gateway(recorded_config(base_state)) as url:
        sending = Client(url)
        yield sending
        sending.close()


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_call_is_answered_as_postgrest_would(call: Call, client: Client) -> None:
    headers = {"Content-Type": "application/json", **call.headers}
    query = headers.pop("X-Query", "")
    path = f"/rest/v1/rpc/{call.function}{'?' if query else ''}{query}"
    text = call.body if isinstance(call.body, str) else json.dumps(call.body)
    body = text.encode() if call.method in {"POST", "PUT"} else None
    status, answered = client.send(call.method, path, headers, body)
    assert (status, read(answered)) == (call.status, call.answer)


def read(body: bytes) -> Any:
    try:
        return json.loads(body, parse_float=Decimal) if body else None
    except ValueError:
        return body.decode()


def test_numbers_are_never_rounded(client: Client) -> None:
    body = b'[{"n": 9007199254740993, "d": 1.10, "big": 123456789012345678901234567890}]'
    status, answered = client.send("POST", "/rpc/echo", {"Content-Type": "application/json"}, body)
    assert (status, read(answered)) == (200, read(body))


def test_very_deep_json_reaches_the_database(client: Client) -> None:
    headers = {"Content-Type": "application/json"}
    deep = b'{"a": ' + b"[" * 3000 + b"]" * 3000 + b"}"
    assert client.send("POST", "/rpc/echo", headers, deep)[0] == 200
    status, body = client.send("POST", "/rpc/echo", headers, deep[:-2])
    assert (status, read(body)["code"]) == (400, "PGRST102")


def test_table_is_refused_in_so_many_words(client: Client) -> None:
    status, body = client.send("GET", "/rest/v1/job", {})
    assert (status, read(body)["code"]) == (400, "PGRST127")


def test_new_function_is_known_after_a_reload(client: Client, base_state: BaseState) -> None:
    base_state.session.execute("create function public.fresh() returns int return 1")
    before = client.send("POST", "/rpc/fresh", {}, b"{}")[0]
    host, port = client._connection.host, client._connection.port
    admin = Admin(f"http://{host}:{port}")
    known = admin.notifications()
    base_state.session.execute("notify pgrst, 'reload schema'")
    admin.wait_for_notification(known)
    admin.close()
    assert (before, client.send("POST", "/rpc/fresh", {}, b"{}")[0]) == (404, 200)
