"""The gateway as a server: where it binds, what it does without a database, many at once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from fairlease.errors import ConfigurationError
from fairlease.local.gateway import GatewayConfig, running_gateway, serve
from fairlease.local.gateway.app import send_answer
from fairlease.local.gateway.errors import Answer
from fairlease.local.gateway.pool import ConnectionPool
from fairlease.local.postgres import LocalPostgres
from gateway.base_state import (
    PUBLISHABLE_KEY,
    SECRET,
    SECRET_KEY,
    SETTINGS,
    BaseState,
    keyed_config,
    recorded_config,
)
from gateway.runner import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JSON = {"Content-Type": "application/json"}
SETUP = """
create function public.who() returns text language sql as 'select current_user::text';
create function public.wait() returns int language sql
  as 'select 1 from pg_advisory_xact_lock(1)';
"""


@pytest.fixture(scope="module")
def base(base_state: BaseState) -> BaseState:
    base_state.reset()
    base_state.session.execute(SETUP)
    return base_state


@contextmanager
def client_of(config: GatewayConfig) -> Iterator[Client]:
    with running_gateway(config) as url:
        client = Client(url)
        yield client
        client.close()


def who(client: Client, **headers: str) -> tuple[int | None, object]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    status, body = client.send("POST", "/rest/v1/rpc/who", {**JSON, **sent}, b"{}")
    return status, json.loads(body)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com", ""])  # noqa: S104
def test_any_address_but_loopback_is_refused(host: str) -> None:
    config = GatewayConfig(database_url="postgresql://nowhere", jwt_secret=SECRET)
    with pytest.raises(ConfigurationError, match="development and tests"):
        serve(config, host)


def test_port_in_use_is_told(base: BaseState) -> None:
    with running_gateway(recorded_config(base)) as url:
        port = int(url.rpartition(":")[2])
        with (
            pytest.raises(ConfigurationError, match=f"port {port}: Address already in use"),
            running_gateway(recorded_config(base), port),
        ):
            pass


def test_keys_are_swapped_on_the_way(base: BaseState) -> None:
    with client_of(keyed_config(base)) as client:
        assert who(client)[0] == 401
        assert who(client, apikey=SECRET_KEY) == (200, "service_role")
        assert who(client, apikey=PUBLISHABLE_KEY) == (200, "anon")
        both = {"apikey": SECRET_KEY, "authorization": f"Bearer {SECRET_KEY}"}
        assert who(client, **both) == (200, "service_role")
        status, body = who(client, apikey="sb_secret_wrong", authorization="Bearer x")
        assert (status, body["message"]) == (401, "Unregistered API key")


def test_two_hundred_calls_at_once_all_succeed(base: BaseState) -> None:
    async def calls(url: str) -> list[int]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60) as client:
            answers = await asyncio.gather(
                *(client.post("/rest/v1/rpc/who", json={}) for _ in range(200))
            )
        return [answer.status_code for answer in answers]

    with running_gateway(recorded_config(base)) as url:
        assert asyncio.run(calls(url)) == [200] * 200


def eventually(holds: Callable[[], bool], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_pool_without_a_place_is_told_after_its_patience(base: BaseState) -> None:
    config = recorded_config(base, db_pool=1, db_pool_acquisition_timeout_seconds=0.1)
    waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    with running_gateway(config) as url:
        base.session.execute("select pg_advisory_lock(1)")
        busy, other = Client(url), Client(url)
        call = threading.Thread(target=busy.send, args=("POST", "/rpc/wait", JSON, b"{}"))
        call.start()
        eventually(lambda: base.session.execute(waiting).fetchone() == (1,))
        status, body = who(other)
        base.session.execute("select pg_advisory_unlock(1)")
        call.join()
        assert (status, body["code"]) == (504, "PGRST003")
        assert who(other)[0] == 200
        busy.close()
        other.close()


async def test_connection_used_last_is_used_first(base: BaseState) -> None:
    pool = ConnectionPool(base.authenticator_url, size=2, timeout_seconds=10)
    async with pool.connection() as first, pool.connection():
        pass
    for _ in range(3):
        async with pool.connection() as again:
            assert again is first
    await pool.close_idle()


def test_database_that_goes_and_comes_back_is_noticed() -> None:
    with LocalPostgres(settings=SETTINGS) as server:
        base = BaseState(server)
        base.reset()
        base.session.execute(SETUP)
        with client_of(recorded_config(base)) as client:
            assert who(client)[0] == 200
            base.session.execute("alter role authenticator nologin")
            base.session.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where usename = 'authenticator'"
            )
            eventually(lambda: who(client)[1]["code"] == "PGRST002")
            base.session.execute("alter role authenticator login")
            eventually(lambda: who(client)[0] == 200)
        base.close()


def test_gateway_starts_without_a_database_and_says_so() -> None:
    config = GatewayConfig(
        database_url="postgresql://authenticator@127.0.0.1:1/postgres", jwt_secret=SECRET
    )
    with client_of(config) as client:
        status, body = who(client)
        assert (status, body["code"]) == (503, "PGRST002")
        assert who(client, authorization="Bearer x")[1]["code"] == "PGRST301"


async def test_header_of_a_function_cannot_start_another_one() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await send_answer(Answer(200, b"x", (("X-One", "1\r\nX-Two: 2"),)), send)
    assert sent[0]["headers"][0] == (b"X-One", b"1 X-Two: 2")


def test_process_of_its_own_says_ready_and_ends_at_a_signal(base: BaseState) -> None:
    variables = {
        "FAIRLEASE_GATEWAY_DATABASE_URL": base.authenticator_url,
        "FAIRLEASE_GATEWAY_JWT_SECRET": SECRET,
        "FAIRLEASE_GATEWAY_API_KEYS": f"{SECRET_KEY}=service_role",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "fairlease.local.gateway"],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        word, url = process.stdout.readline().split()
        client = Client(url)
        assert (word, who(client, apikey=SECRET_KEY)) == ("READY", (200, "service_role"))
        client.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) in {0, -signal.SIGTERM}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--host", "0.0.0.0", "binds loopback only, not 0.0.0.0"),  # noqa: S104
        ("--jwt-secret", "short", "jwt_secret: use 32 characters or more"),
        ("--database-url", "", "database_url: give the authenticator role's URL"),
    ],
)
def test_process_refuses_what_cannot_be_in_one_line(option: str, value: str, message: str) -> None:
    command = [sys.executable, "-m", "fairlease.local.gateway"]
    refused = subprocess.run(
        [*command, "--database-url", "postgresql://nowhere", option, value],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert message in refused.stderr
