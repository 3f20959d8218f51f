"""A real host, asked by strangers: over raw sockets, as no well-behaved client would."""

from __future__ import annotations

import hmac
import os
import re
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from starlette.requests import Request

from fairlease.host import web
from fairlease.telemetry.exposition import Now, expose
from fairlease.telemetry.metrics import Metrics
from stack.hosts import NAP, HostProcess, running_host, write_task

if TYPE_CHECKING:
    from collections.abc import Iterator

OLD, NEW = "old-secret-0123456789", "new-secret-0123456789"
HEADER = "x-edge-function-secret"
PATH = "/functions/v1/nap"
PATIENCE_SECONDS = 30.0


@dataclass(frozen=True)
class Answer:
    """`status` is 0 where the connection was closed without one."""

    status: int
    raw: bytes


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    root = tmp_path_factory.mktemp("functions")
    write_task(root, "nap", NAP)
    with running_host(root, EDGE_FUNCTION_SECRET=f"{OLD},{NEW}") as running:
        yield running


def connected(host: HostProcess) -> socket.socket:
    port = int(host.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)


def sent(host: HostProcess, *parts: bytes) -> Answer:
    """What comes back until the head of an answer is complete, or the end."""
    with connected(host) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        raw = b""
        while b"\r\n\r\n" not in raw:
            try:
                some = connection.recv(65536)
            except ConnectionResetError:
                break
            if not some:
                break
            raw += some
    return Answer(int(raw.split()[1]) if raw else 0, raw)


def head(*headers: str, method: str = "POST", path: str = PATH) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: h", *headers, "", ""]
    return "\r\n".join(lines).encode()


def secret(text: str) -> str:
    return f"{HEADER}: {text}"


def test_during_a_rotation_both_secrets_open_and_a_third_does_not(host: HostProcess) -> None:
    statuses = [
        host.poke(headers={HEADER: given}).status_code
        for given in (OLD, NEW, "third-secret-0123456789", f"{OLD},{NEW}", "", OLD[:-1], OLD + "x")
    ]
    assert statuses == [202, 202, 401, 401, 401, 401, 401]


def test_after_a_rotation_the_old_secret_opens_nothing(tmp_path: Path) -> None:
    write_task(tmp_path, "nap", NAP)
    with running_host(tmp_path, EDGE_FUNCTION_SECRET=NEW) as rotated:
        assert rotated.poke(headers={HEADER: OLD}).status_code == 401
        assert rotated.poke(headers={HEADER: NEW}).status_code == 202


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (head("content-length: 0"), 401),
        (head("content-length: 0", path=f"{PATH}?{HEADER}={OLD}&secret={OLD}"), 401),
        (head(f"cookie: {HEADER}={OLD}"), 401),
        (head(f"authorization: Bearer {OLD}"), 401),
        (head(secret("")), 401),
        (head(secret(OLD), secret(OLD)), 401),
        (head(secret(OLD + "\x00")), 400),
        (head(secret(OLD + "\x0b")), 400),
        (head(method="HEAD"), 401),
        (head(secret(OLD), method="HEAD"), 405),
        (head(secret(OLD), method="GET"), 405),
        (head(secret(OLD), method="BREW"), 405),
        (head(secret(OLD), method="TRACE"), 405),
        (head(method="CONNECT", path="h:1"), 404),
        (head(path="/"), 404),
        (head(path="/functions/v2/nap"), 404),
        (head(path="/openapi.json", method="GET"), 404),
        (head(path="/metrics"), 405),
        (head(path="/healthz", method="DELETE"), 405),
        (head("upgrade: websocket", "connection: upgrade", method="GET"), 401),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello tls", 400),
    ],
)
def test_no_way_of_asking_opens_without_the_header(
    host: HostProcess, request_head: bytes, status: int
) -> None:
    answer = sent(host, request_head)
    assert answer.status == status, answer.raw
    assert OLD.encode() not in answer.raw


@pytest.mark.parametrize(
    "name",
    [
        *("../nap", "..%2fnap", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/etc/passwd", "nap/task.py"),
        *("nap.task", "nap.task:run", "os.system", "fairlease.cli.main", "__main__", "__class__"),
        *("nap%00", "nap%0d%0ax: y", "nap;ls", "$(id)", "NAP", "n\u0430p", "unknown"),
        "x" * 10_000,
    ],
)
def test_a_hostile_function_name_finds_nothing_and_is_not_repeated_at_length(
    host: HostProcess, name: str
) -> None:
    answer = host.poke(name, headers={HEADER: OLD})
    assert answer.status_code == 404
    assert len(answer.content) < 400
    assert len(answer.headers) < 10


@pytest.mark.parametrize(
    "accept",
    [
        *("", "*/*", ";;,,=", "text/plain;q=x", "text/plain;version=x", "text/plain;version=1.a"),
        *("application/openmetrics-text;version=zzz", "application/openmetrics-text;escaping"),
        'application/openmetrics-text;version=2.0.0;escaping="',
        "a/b," * 2000,
    ],
)
def test_no_way_of_asking_for_metrics_fails_and_fills_the_log(accept: str) -> None:
    body, content_type = expose(Metrics(), Now(), accept)
    assert b"fairlease_" in body
    assert content_type.startswith(("text/plain", "application/openmetrics-text"))
    assert not re.search(r"[\r\n]|zzz|1\.a", content_type)


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ((head(secret(OLD), "content-length: 65537"),), 413),
        ((head(secret(OLD), "content-length: 99999999999"),), 413),
        ((head(secret(OLD), "content-length: 9" + "9" * 30),), 400),
        ((head(secret(OLD), "content-length: -1"),), 400),
        ((head(secret(OLD), "content-length: 5", "content-length: 6"), b"abcdef"), 400),
        ((head(*(f"h{n}: v" for n in range(3000))),), 431),
        ((head("h: " + "v" * 1_000_000),), 431),
        ((head(path="/" + "x" * 100_000),), 414),
        # A stranger's body is not waited for.
        ((head("content-length: 99999999"), b"x" * 1000), 401),
        ((head("transfer-encoding: chunked"), *[b"10000\r\n" + b"x" * 65536 + b"\r\n"] * 200), 401),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_read(
    host: HostProcess, parts: tuple[bytes, ...], status: int
) -> None:
    began = time.monotonic()
    assert sent(host, *parts).status == status
    assert time.monotonic() - began < 5


def test_a_second_request_hidden_in_the_body_of_the_first_is_not_answered(
    host: HostProcess,
) -> None:
    smuggled = head(method="GET", path="/metrics")
    both = head(secret(OLD), f"content-length: {len(smuggled)}", "transfer-encoding: chunked")
    with connected(host) as connection:
        connection.sendall(both + b"0\r\n\r\n" + smuggled)
        raw = b""
        while some := connection.recv(65536):
            raw += some
    assert raw.count(b"HTTP/1.1 ") == 1


def test_hundreds_that_never_end_their_request_keep_nobody_out(host: HostProcess) -> None:
    slow = [connected(host) for _ in range(300)]
    try:
        for connection in slow:
            connection.sendall(f"POST {PATH} HTTP/1.1\r\nhost: h\r\n".encode())
        began = time.monotonic()
        assert host.poke(headers={HEADER: OLD}).status_code == 202
        assert httpx.get(f"{host.url}/healthz").status_code == 200
        assert time.monotonic() - began < 5
    finally:
        for connection in slow:
            connection.close()


@pytest.mark.slow
def test_a_slow_client_is_given_ten_seconds_for_its_headers_and_ten_for_its_body(
    host: HostProcess,
) -> None:
    began = time.monotonic()
    with connected(host) as slow_head, connected(host) as slow_body:
        slow_head.sendall(f"POST {PATH} HTTP/1.1\r\nhost: h\r\n".encode())
        slow_body.sendall(head(secret(OLD), "content-length: 10") + b"ab")
        assert slow_body.recv(65536).startswith(b"HTTP/1.1 408")
        assert slow_head.recv(65536) == b""
    assert time.monotonic() - began < 20


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
def test_no_process_of_the_host_shows_the_secret_in_its_command_line(host: HostProcess) -> None:
    group = [
        entry
        for entry in Path("/proc").glob("[0-9]*")
        if _group_of(int(entry.name)) == host.process.pid
    ]
    assert len(group) >= 2
    for process in group:
        assert OLD.encode() not in (process / "cmdline").read_bytes()


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


# Of the header as bytes, not of text: compare_digest refuses text outside of ASCII.
@given(given_=st.binary(max_size=200), valid=st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_any_bytes_are_compared_with_every_secret_in_constant_time(
    given_: bytes, valid: list[str]
) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def recording(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return hmac.compare_digest(a, b)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(web, "hmac", type("Recording", (), {"compare_digest": recording}))
        scope = {"type": "http", "headers": [(HEADER.encode(), given_)]}
        opened = web._opens([SecretStr(one) for one in valid], Request(scope))
    assert opened is (given_ in [one.encode() for one in valid])
    assert compared == [(given_, one.encode()) for one in valid]
