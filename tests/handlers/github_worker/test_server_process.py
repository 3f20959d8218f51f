from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from fairlease.errors import ConfigurationError
from fairlease.local.github.__main__ import main
from fairlease.local.github.process import GitHubServer

COMMAND = [sys.executable, "-m", "fairlease.local.github"]
PARENT = """
import sys, time
from fairlease.local.github.__main__ import main
from fairlease.local.github.process import GitHubServer
print(GitHubServer().start().url, flush=True)
time.sleep(60)
"""


def answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/_measure", timeout=2).close()  # noqa: S310
    except (urllib.error.URLError, ConnectionError):
        return False
    return True


def test_the_server_ends_with_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None
    url = parent.stdout.readline().strip()
    assert answers(url)

    parent.kill()
    parent.wait()
    parent.stdout.close()

    deadline = time.monotonic() + 10
    while answers(url) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not answers(url)


def test_a_signal_ends_it_cleanly() -> None:
    server = subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert server.stdout is not None
    url = server.stdout.readline().removeprefix("READY ").strip()
    assert answers(url)

    server.send_signal(signal.SIGTERM)
    _, errors = server.communicate(timeout=10)

    assert (server.returncode, errors) == (0, "")


def test_it_listens_on_one_address_of_loopback_only(github: GitHubServer) -> None:
    port = int(github.url.rpartition(":")[2])

    with socket.create_server(("127.0.0.2", port)):
        pass


@pytest.mark.parametrize(
    "arguments",
    [
        ["--scale", "-1"],
        ["--scale", "nan"],
        ["--app-id", "7"],
        ["--durations", "/no/such/file"],
        ["--limits", "{"],
        ["--limits", '{"primary": "many"}'],
    ],
)
def test_what_it_cannot_use_is_said(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(("cannot serve: ", "not understood: "))


def test_a_port_that_is_taken_is_said(
    github: GitHubServer, capfd: pytest.CaptureFixture[str]
) -> None:
    port = github.url.rpartition(":")[2]

    with pytest.raises(ConfigurationError, match="did not start"):
        GitHubServer("--port", port).start()

    assert "cannot serve" in capfd.readouterr().err
