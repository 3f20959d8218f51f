"""`fairlease dev` as a process: what it offers, and what it leaves behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest
from supabase import ClientOptions, create_client

from stack.devs import running_dev, write_function

if TYPE_CHECKING:
    from pathlib import Path


# Two whole starts, on a machine that may be busy.
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    return write_function(tmp_path)


def send(environment: dict[str, str], name: str) -> None:
    """As an application does, through the unchanged client."""
    message = {"method": "greet", "org": "acme", "args": {"name": name}}
    with httpx.Client(timeout=10) as connection:
        client = create_client(
            environment["SUPABASE_URL"],
            environment["SUPABASE_SECRET_KEY"],
            ClientOptions(httpx_client=connection),
        )
        client.schema("pgmq_public").rpc(
            "send", {"queue_name": "greetings", "message": message, "sleep_seconds": 0}
        ).execute()


def poke(environment: dict[str, str]) -> None:
    answer = httpx.post(
        f"{environment['FAIRLEASE_HOST_URL']}/functions/v1/greeter",
        headers={"x-edge-function-secret": environment["EDGE_FUNCTION_SECRET"]},
        timeout=10,
    )
    assert answer.status_code == 202


def archived(environment: dict[str, str]) -> list[str]:
    with psycopg.connect(environment["FAIRLEASE_DATABASE_URL"]) as session:
        rows = session.execute("select message #>> '{args,name}' from pgmq.a_greetings")
        return [row[0] for row in rows.fetchall()]


def test_message_sent_by_the_supabase_client_is_handled_and_ctrl_c_leaves_nothing(
    tmp_path: Path, functions: Path
) -> None:
    with running_dev(tmp_path, "--no-keep", functions=functions) as dev:
        environment = dev.environment()
        send(environment, "Ada")
        poke(environment)
        dev.says("host: greeted Ada")
        assert dev.ends_with(signal.SIGINT) == 130
        assert list(dev.temporary.iterdir()) == []
    assert not (tmp_path / ".fairlease").exists()


@pytest.mark.slow
def test_killed_stack_leaves_no_process_and_the_next_finds_its_data_and_keys(
    tmp_path: Path, functions: Path
) -> None:
    with running_dev(tmp_path, functions=functions) as dev:
        before = dev.environment()
        send(before, "Ada")
        assert dev.ends_with(signal.SIGKILL) == -signal.SIGKILL
    with running_dev(tmp_path, functions=functions) as dev:
        after = dev.environment()
        assert after["SUPABASE_SECRET_KEY"] == before["SUPABASE_SECRET_KEY"]
        poke(after)
        dev.says("host: greeted Ada")
        assert dev.ends_with(signal.SIGTERM) == 130
    assert (tmp_path / ".fairlease" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    "delay_seconds",
    [0.3, pytest.param(1.5, marks=pytest.mark.slow), pytest.param(2.5, marks=pytest.mark.slow)],
)
def test_ctrl_c_while_it_starts_leaves_nothing(
    tmp_path: Path, functions: Path, delay_seconds: float
) -> None:
    with running_dev(tmp_path, "--no-keep", functions=functions) as dev:
        with contextlib.suppress(subprocess.TimeoutExpired):
            dev.process.wait(delay_seconds)
        dev.ends_with(signal.SIGINT)
        assert list(dev.temporary.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argument", "part"),
    [("serve", "host"), pytest.param("-D", "database", marks=pytest.mark.slow)],
)
def test_stack_ends_when_a_part_of_it_does(
    tmp_path: Path, functions: Path, argument: str, part: str
) -> None:
    with running_dev(tmp_path, "--no-keep", functions=functions) as dev:
        dev.environment()
        os.kill(dev.part(argument), signal.SIGKILL)
        assert dev.ends_with() == 1
        assert dev.last_words() == f"fairlease: the {part} ended by itself: see what it said above"
        assert list(dev.temporary.iterdir()) == []


@pytest.mark.parametrize("option", ["--port", "--host-port", "--database-port"])
def test_taken_port_is_one_line_with_the_remedy(
    tmp_path: Path, functions: Path, option: str
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        with running_dev(tmp_path, "--no-keep", option, port, functions=functions) as dev:
            assert dev.ends_with() == 2
            assert port in dev.last_words()
            assert "another" in dev.last_words()
            assert list(dev.temporary.iterdir()) == []


def test_data_folder_that_cannot_be_made_is_one_line_with_the_remedy(
    tmp_path: Path, functions: Path
) -> None:
    tmp_path.joinpath("file").write_text("")
    with running_dev(tmp_path, "--data", "file/data", functions=functions) as dev:
        assert dev.ends_with() == 2
        assert dev.errors.read_text() == (
            "fairlease: cannot use the data folder file/data: Not a directory: "
            "change its owner or name another\n"
        )
