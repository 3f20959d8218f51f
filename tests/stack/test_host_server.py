"""The server under the routes: slow clients, open files, and what it logs."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stack.hosts import NAP, HostProcess, eventually, half_a_poke, running_host, write_task

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADERS_SECONDS = 10
FEW_FILES = 256


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    write_task(tmp_path / "functions", "nap", NAP)
    return tmp_path / "functions"


@pytest.fixture
def few_files() -> Iterator[int]:
    """What is started meanwhile may open few, unless it asks for more; yields the most it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW_FILES, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(host: HostProcess) -> socket.socket:
    address, port = host.url.removeprefix("http://").split(":")
    return socket.create_connection((address, int(port)), timeout=2 * HEADERS_SECONDS)


def seconds_until_closed(connection: socket.socket, since: float) -> float:
    while connection.recv(4096):
        pass
    return time.monotonic() - since


@pytest.mark.slow
def test_a_connection_whose_headers_do_not_come_makes_room_and_holds_up_nobody(
    functions: Path,
) -> None:
    with running_host(functions) as host, connect(host) as slow, connect(host) as idle:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nhost: h\r\nx-never: ")
        idle.sendall(b"GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n")
        assert idle.recv(4096).startswith(b"HTTP/1.1 200 ")
        since = time.monotonic()
        assert host.poke().status_code == 202
        for connection in (slow, idle):
            assert abs(seconds_until_closed(connection, since) - HEADERS_SECONDS) < 2


def test_a_host_and_its_isolates_open_as_many_files_as_they_may(
    functions: Path, few_files: int
) -> None:
    with running_host(functions) as host:
        for pid in (host.process.pid, host.started()):
            (line,) = [
                line
                for line in Path(f"/proc/{pid}/limits").read_text().splitlines()
                if line.startswith("Max open files")
            ]
            assert line.split()[3:5] == [str(few_files)] * 2
            assert few_files > FEW_FILES


def test_what_the_server_says_is_in_the_log_as_ours_is(functions: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running_host(functions, log=log, FAIRLEASE_LOG_FORMAT="json") as host:
        os.kill(host.started(), signal.SIGKILL)
        assert eventually(lambda: "Unexpected exit from worker-1" in host.said())
        assert host.poke().status_code == 202
        host.process.terminate()
        assert host.wait() == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (ours,) = [line for line in lines if line["event"] == "an isolate died"]
    (theirs,) = [line for line in lines if line["event"].startswith("Unexpected exit")]
    assert ours["level"] == theirs["level"] == "error"
    assert ours["at"] >= theirs["at"]


def test_a_client_that_leaves_in_the_middle_is_no_error(functions: Path, tmp_path: Path) -> None:
    with running_host(functions, log=tmp_path / "log") as host:
        half_a_poke(host, "nap").close()
        assert host.poke().status_code == 202
        host.process.terminate()
        assert host.wait() == 0
        assert [line for line in host.said().splitlines() if " info " not in line] == []
