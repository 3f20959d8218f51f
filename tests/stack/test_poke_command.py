from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stack.hosts import NAP, SECRET, HostProcess, running_host, write_task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli import Cli


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    root = tmp_path_factory.mktemp("functions")
    write_task(root, "nap", NAP)
    with running_host(root) as running:
        yield running


def test_a_poke_prints_the_answer_of_the_host(
    cli: Cli, host: HostProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_FUNCTION_SECRET", SECRET)
    statuses = [
        json.loads(cli("poke", "nap", "--url", host.url).stdout)["status"] for _ in range(2)
    ]
    assert statuses == ["accepted", "already_running"]


@pytest.mark.parametrize(
    ("secret", "name", "url", "said"),
    [
        ("wrong", "nap", None, "refuses our EDGE_FUNCTION_SECRET"),
        (SECRET, "unknown", None, "404"),
        (SECRET, "../nap", None, "404"),
        (SECRET, "nap", "http://127.0.0.1:1", "fairlease serve"),
        (SECRET, "nap", "nowhere", "give http://host:port"),
        ("", "nap", None, "EDGE_FUNCTION_SECRET is not set"),
    ],
)
def test_a_poke_that_wakes_nothing_is_one_line_and_an_exit_code(
    cli: Cli,
    host: HostProcess,
    monkeypatch: pytest.MonkeyPatch,
    secret: str,
    name: str,
    url: str | None,
    said: str,
) -> None:
    monkeypatch.setenv("EDGE_FUNCTION_SECRET", secret)
    answer = cli("poke", name, "--url", url or host.url)
    assert answer.returncode != 0
    assert answer.stdout == ""
    assert said in answer.stderr
    assert answer.stderr.count("\n") == 1
