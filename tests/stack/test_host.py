"""`fairlease serve` as a process, over real HTTP, with a task for a function."""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING

import httpx
import pytest

from stack.hosts import (
    NAP,
    SECRET,
    HostProcess,
    alive,
    eventually,
    fails_to_start,
    running_host,
    write_task,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("functions")
    for name in ("nap", "doze"):
        write_task(root, name, NAP)
    return root


@pytest.fixture(scope="module")
def host(functions: Path) -> Iterator[HostProcess]:
    with running_host(functions) as running:
        yield running


def test_a_poke_without_the_secret_opens_nothing(host: HostProcess) -> None:
    for headers in ({}, {"x-edge-function-secret": "wrong"}):
        for name in ("nap", "unknown"):
            assert host.poke(name, headers=headers).status_code == 401


def test_either_of_two_secrets_opens(host: HostProcess) -> None:
    for secret in ("other", SECRET):
        assert host.poke("unknown", headers={"x-edge-function-secret": secret}).status_code == 404


def test_names_that_climb_out_of_the_folder_find_nothing(host: HostProcess) -> None:
    for name in ("..%2fnap", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "nap%2ftask.py", "nap%00"):
        assert host.poke(name).status_code == 404


def test_a_get_is_405_and_a_large_body_is_413(host: HostProcess) -> None:
    headers = {"x-edge-function-secret": SECRET}
    assert httpx.get(f"{host.url}/functions/v1/nap", headers=headers).status_code == 405
    assert host.poke(content=b"x" * 65537).status_code == 413


def test_a_second_poke_names_the_run_that_goes_on_and_other_functions_start(
    host: HostProcess,
) -> None:
    first = host.poke().json()
    second = host.poke().json()
    assert (first["status"], second["status"]) == ("accepted", "already_running")
    assert first["run_id"] == second["run_id"]
    assert host.poke("doze").json()["status"] == "accepted"


def test_the_host_says_that_it_is_healthy_and_ready(host: HostProcess) -> None:
    assert httpx.get(f"{host.url}/healthz").json() == {"status": "ok"}
    ready = httpx.get(f"{host.url}/readyz")
    assert (ready.status_code, ready.json()["ready"]) == (200, True)


def test_the_port_of_a_running_host_is_not_shared_silently(
    host: HostProcess, functions: Path
) -> None:
    port = host.url.rpartition(":")[2]
    failed = fails_to_start(functions, "--port", port)
    assert failed.returncode == 2
    assert failed.stderr.strip() == (
        f"fairlease: port {port} on 127.0.0.1 is taken; stop who has it, or give another with "
        "--port"
    )


def test_the_port_of_a_stranger_is_refused(functions: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        failed = fails_to_start(functions, "--port", str(stranger.getsockname()[1]))
    assert failed.returncode == 2
    assert "is taken" in failed.stderr


def test_without_a_secret_nothing_is_served(functions: Path) -> None:
    failed = fails_to_start(functions, EDGE_FUNCTION_SECRET=" , ")
    assert failed.returncode == 2
    assert failed.stderr.startswith("fairlease: EDGE_FUNCTION_SECRET is not set")
    assert failed.stderr.count("\n") == 1


def test_a_broken_function_is_one_line_that_names_its_file(tmp_path: Path) -> None:
    write_task(tmp_path, "broken", "import no_such_module")
    failed = fails_to_start(tmp_path)
    assert failed.returncode == 2
    assert f"{tmp_path}/broken/task.py: cannot be loaded" in failed.stderr
    assert failed.stderr.count("\n") == 1


def test_sigterm_tells_the_run_waits_for_it_and_leaves_nothing(functions: Path) -> None:
    with running_host(functions) as host:
        worker = host.started()
        host.process.terminate()
        assert [host.line().split()[0] for _ in range(2)] == ["told", "ended"]
        assert host.wait() == 0
        assert not alive(worker)


def test_a_run_hears_of_the_stop_before_the_last_request_is_through(functions: Path) -> None:
    # The server runs its own shutdown only after that, when much of the grace may be gone.
    with running_host(functions) as host:
        host.started()
        address = host.url.removeprefix("http://").split(":")
        with socket.create_connection((address[0], int(address[1]))) as slow:
            slow.sendall(
                b"POST /functions/v1/nap HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n"
                b"x-edge-function-secret: s3cret\r\n\r\nx"
            )
            assert eventually(lambda: host.poke("doze").status_code == 202)
            host.process.terminate()
            assert {host.line().split()[0] for _ in range(2)} == {"started", "told"}
            slow.sendall(b"y")
            assert slow.recv(100).startswith(b"HTTP/1.1 503 ")
        assert host.wait() == 0


def test_a_burst_of_stop_signals_is_one_stop(functions: Path) -> None:
    # The second signal within the first's handling made the worker hang for the whole grace.
    with running_host(functions) as host:
        worker = host.started()
        while alive(worker):
            os.killpg(host.process.pid, signal.SIGTERM)
        assert host.wait() == 0
        assert [host.line().split()[0] for _ in range(2)] == ["told", "ended"]


def test_a_worker_whose_main_process_was_killed_ends_its_run_and_itself(functions: Path) -> None:
    with running_host(functions) as host:
        worker = host.started()
        host.process.kill()
        assert [host.line().split()[0] for _ in range(2)] == ["told", "ended"]
        assert eventually(lambda: not alive(worker))


def test_a_killed_worker_is_replaced(functions: Path) -> None:
    with running_host(functions) as host:
        worker = host.started()
        os.kill(worker, signal.SIGKILL)
        assert eventually(lambda: host.poke("doze").json()["status"] == "accepted")
        assert int(host.line().split()[1]) != worker
