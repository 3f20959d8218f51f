"""What a shim passes on, what it refuses, what it says when the host does not answer."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest

from shims.deno import FUNCTIONS, MISSING, Shim, find_deno, running_shim
from shims.receiver import Receiver, receiver
from stack.hosts import NAP, SECRET, running_host, write_task

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(find_deno() is None, reason=MISSING)
SECRETS = f"other, {SECRET}"
LIMIT = 64 * 1024
PATIENCE_MS = 300


@pytest.fixture(scope="module")
def hosted() -> Iterator[tuple[Shim, Receiver]]:
    script = FUNCTIONS / "github_worker" / "index.ts"
    with (
        receiver() as state,
        running_shim(
            script, EDGE_FUNCTION_SECRET=SECRETS, FAIRLEASE_HOST_URL=f"{state.url}/"
        ) as shim,
    ):
        yield shim, state


@pytest.fixture
def host(hosted: tuple[Shim, Receiver]) -> Receiver:
    fresh, state = Receiver(), hosted[1]
    state.received.clear()
    state.status, state.headers, state.body = fresh.status, fresh.headers, fresh.body
    return state


@pytest.fixture
def shim(hosted: tuple[Shim, Receiver], host: Receiver) -> Iterator[Shim]:
    yield hosted[0]
    written = "\n".join(hosted[0].output)
    assert SECRET not in written
    assert "other" not in written


def script_for(folder: Path, name: str, timeout_ms: int = PATIENCE_MS) -> Path:
    script = folder / "index.ts"
    script.write_text(
        f'import {{ forwardPokes }} from "{FUNCTIONS}/_shared/poke.ts";\n'
        f'Deno.serve(forwardPokes("{name}", undefined, {timeout_ms}));\n'
    )
    return script


def test_the_body_and_the_secret_go_on_and_nothing_else_of_the_caller(
    shim: Shim, host: Receiver
) -> None:
    headers = {"x-edge-function-secret": SECRET, "authorization": "Bearer x", "cookie": "a=b"}
    body = b'{"why": "\xc3\xa4"}'
    assert shim.poke(headers=headers, content=body).status_code == 202
    (received,) = host.received
    assert received.path == "/functions/v1/github_worker"
    assert received.headers["x-edge-function-secret"] == SECRET
    assert not {"authorization", "cookie"} & received.headers.keys()
    assert received.body == body


@pytest.mark.parametrize("status", [200, 202, 404, 413, 500, 503])
def test_status_and_body_of_the_host_are_the_answer(
    shim: Shim, host: Receiver, status: int
) -> None:
    host.status, host.body = status, b'{"error": "so it is"}'
    host.headers = {"content-type": "application/json", "retry-after": "7", "x-inside": "1"}
    answer = shim.poke(SECRET)
    assert (answer.status_code, answer.json()) == (status, {"error": "so it is"})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["retry-after"] == "7"
    assert "x-inside" not in answer.headers


@pytest.mark.parametrize("secret", ["other", SECRET])
def test_either_of_two_secrets_opens(shim: Shim, secret: str) -> None:
    assert shim.poke(secret).status_code == 202


@pytest.mark.parametrize(
    "wrong", [None, "", "wrong", SECRET[:-1], f"{SECRET}x", SECRETS, f"{SECRET}, {SECRET}", ","]
)
def test_a_wrong_secret_is_401_for_every_method_and_the_host_hears_nothing(
    shim: Shim, host: Receiver, wrong: str | None
) -> None:
    for method in ("POST", "GET", "DELETE"):
        answer = shim.poke(wrong, method=method)
        assert answer.status_code == 401
        assert answer.json() == {"error": "wrong or missing x-edge-function-secret"}
    assert host.received == []


def test_a_get_is_405_and_a_large_body_is_413_however_it_is_sent(
    shim: Shim, host: Receiver
) -> None:
    assert shim.poke(SECRET, method="GET").status_code == 405
    assert shim.poke(SECRET, content=b"x" * (LIMIT + 1)).status_code == 413
    chunks = (b"x" * 1024 for _ in range(65))
    assert shim.poke(SECRET, content=chunks).status_code == 413
    assert host.received == []
    assert shim.poke(SECRET, content=b"x" * LIMIT).status_code == 202
    assert len(host.received[0].body) == LIMIT


def test_a_redirect_is_502_and_is_not_followed_with_the_secret(shim: Shim, host: Receiver) -> None:
    with receiver() as elsewhere:
        host.status, host.headers = 307, {"location": f"{elsewhere.url}/functions/v1/x"}
        answer = shim.poke(SECRET)
        assert (answer.status_code, elsewhere.received) == (502, [])
    assert answer.json() == {"error": "the function host redirects"}


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_a_host_that_is_down_is_502_with_a_json_error(tmp_path: Path) -> None:
    down = f"http://127.0.0.1:{closed_port()}"
    script = script_for(tmp_path, "nap")
    variables = {"EDGE_FUNCTION_SECRET": SECRET, "FAIRLEASE_HOST_URL": down}
    with running_shim(script, **variables) as shim:
        answer = shim.poke(SECRET)
    assert answer.status_code == 502
    assert answer.json() == {"error": "the function host cannot be reached; poke again"}
    assert any("cannot be reached" in line for line in shim.output)
    assert SECRET not in "\n".join(shim.output)


def test_a_host_that_does_not_answer_in_time_is_504(tmp_path: Path) -> None:
    script = script_for(tmp_path, "nap")
    with receiver() as host:
        host.delay_seconds = 3 * PATIENCE_MS / 1000
        variables = {"EDGE_FUNCTION_SECRET": SECRET, "FAIRLEASE_HOST_URL": host.url}
        with running_shim(script, **variables) as shim:
            answer = shim.poke(SECRET)
    assert answer.status_code == 504
    assert answer.json()["error"].startswith("the function host did not answer within 300 ms")


@pytest.mark.parametrize(
    "variables",
    [
        {"FAIRLEASE_HOST_URL": "http://127.0.0.1:1"},
        {"FAIRLEASE_HOST_URL": "http://127.0.0.1:1", "EDGE_FUNCTION_SECRET": " , "},
        {"EDGE_FUNCTION_SECRET": SECRET},
        {"EDGE_FUNCTION_SECRET": SECRET, "FAIRLEASE_HOST_URL": "file:///etc/passwd"},
        {"EDGE_FUNCTION_SECRET": SECRET, "FAIRLEASE_HOST_URL": "http://me:hush@127.0.0.1:1"},
    ],
)
def test_what_is_not_configured_opens_to_nobody_and_its_log_names_the_variable(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    with running_shim(script_for(tmp_path, "nap"), **variables) as shim:
        for secret in ("", SECRET):
            assert shim.poke(secret).status_code == 503
    written = "\n".join(shim.output)
    assert "is not set, or malformed" in written
    assert "hush" not in written


def test_a_poke_reaches_a_real_host_and_so_does_its_answer(tmp_path: Path) -> None:
    write_task(tmp_path / "functions", "nap", NAP)
    with running_host(tmp_path / "functions") as host:
        variables = {"EDGE_FUNCTION_SECRET": SECRET, "FAIRLEASE_HOST_URL": host.url}
        with running_shim(script_for(tmp_path, "nap", 8000), **variables) as shim:
            first, second = shim.poke(SECRET, json={}), shim.poke(SECRET)
            assert host.line().startswith("started ")
    assert [a.status_code for a in (first, second)] == [202, 202]
    assert (first.json()["status"], second.json()["status"]) == ("accepted", "already_running")
    assert json.loads(first.text)["run_id"] == json.loads(second.text)["run_id"]


def test_a_function_that_the_host_does_not_have_is_its_404(tmp_path: Path) -> None:
    write_task(tmp_path / "functions", "nap", NAP)
    with running_host(tmp_path / "functions") as host:
        variables = {"EDGE_FUNCTION_SECRET": SECRET, "FAIRLEASE_HOST_URL": host.url}
        with running_shim(script_for(tmp_path, "gone", 8000), **variables) as shim:
            answer = shim.poke(SECRET)
    assert (answer.status_code, answer.json()["error"]) == (404, "no function 'gone' here")
