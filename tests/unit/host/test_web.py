"""The routes in process; tests/stack has them over real HTTP."""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from pydantic import SecretStr

from fairlease.host import web
from fairlease.host.functions import FunctionFolder
from fairlease.host.manifest import Kind, Manifest
from fairlease.host.readiness import Readiness
from fairlease.host.runs import Runs
from fairlease.host.web import BODY_LIMIT, Surface, build_app
from fairlease.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SECRETS = (SecretStr("old-secret"), SecretStr("néw-secret"))
OPEN = {"x-edge-function-secret": "old-secret"}
NAP = FunctionFolder(Path("nap"), Manifest(name="nap", kind=Kind.TASK))


@dataclass
class Nap:
    """A run that goes on until it is told to end."""

    run_id: str
    end: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> str:
        await self.end.wait()
        return "woke"

    def stop(self) -> None:
        self.end.set()

    def cancel_handlers(self) -> None:
        self.end.set()


@dataclass
class Host:
    client: httpx.AsyncClient
    runs: Runs
    naps: list[Nap]
    state: list[Readiness]

    async def poke(self, name: str = "nap", **options: object) -> httpx.Response:
        options.setdefault("headers", OPEN)
        return await self.client.post(f"/functions/v1/{name}", **options)


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    naps: list[Nap] = []
    state = [Readiness()]

    def new_run(_folder: FunctionFolder) -> Nap:
        naps.append(Nap(f"run-{len(naps)}"))
        return naps[-1]

    async def readiness() -> Readiness:
        return state[0]

    runs = Runs(new_run)
    issues = {"host": load_settings({"FAIRLEASE_MAX_CRASHES": ""}).issues, "nap": ()}

    async def metrics(accept: str) -> tuple[bytes, str]:
        return f"asked for {accept}".encode(), "text/plain; version=0.0.4"

    app = build_app(Surface({"nap": NAP}, SECRETS, runs, issues, readiness, metrics))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
        yield Host(client, runs, naps, state)
    runs.stop()
    await runs.until_idle()


async def test_a_poke_is_accepted_at_once_and_a_second_one_names_the_same_run(host: Host) -> None:
    first, second = await host.poke(), await host.poke()
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json() == {"status": "accepted", "run_id": "run-0"}
    assert second.json() == {"status": "already_running", "run_id": "run-0"}


async def test_a_run_that_has_ended_makes_room_for_the_next(host: Host) -> None:
    await host.poke()
    host.naps[0].end.set()
    await host.runs.until_idle()
    assert (await host.poke()).json() == {"status": "accepted", "run_id": "run-1"}


@pytest.mark.parametrize("secret", ["old-secret", "néw-secret"])
async def test_each_secret_opens(host: Host, secret: str) -> None:
    headers = [(b"x-edge-function-secret", secret.encode())]
    assert (await host.poke(headers=headers)).status_code == 202


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-edge-function-secret": ""},
        {"x-edge-function-secret": "old-secre"},
        {"x-edge-function-secret": "old-secret "[:-1] + "x"},
        {"x-edge-function-secret": "old-secret,néw-secret".encode()},
        {"authorization": "Bearer old-secret"},
        [("x-edge-function-secret", "old-secret"), ("x-edge-function-secret", "old-secret")],
        {"x-edge-function-secret": b"\xff\x00"},
    ],
)
async def test_anything_else_is_401_before_anything_is_said_of_the_function(
    host: Host, headers: object
) -> None:
    for name in ("nap", "unknown", "..%2Fnap"):
        assert (await host.poke(name, headers=headers)).status_code == 401
    got = await host.client.get("/functions/v1/nap", headers=headers)
    assert got.status_code == 401
    assert not host.naps


async def test_every_secret_is_compared_whatever_the_first_one_says(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[bytes] = []
    plain = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append(b) or plain(a, b))
    await host.poke()
    assert len(compared) == len(SECRETS)


@pytest.mark.parametrize(
    "name", ["unknown", "", "nap/", "nap/x", "..%2Fnap", "%2e%2e/nap", "nap%00", "x" * 5000, "Nap"]
)
async def test_a_name_that_was_not_discovered_is_404(host: Host, name: str) -> None:
    answer = await host.poke(name)
    assert answer.status_code == 404
    assert len(answer.text) < 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_any_other_method_is_405_and_names_the_right_one(host: Host, method: str) -> None:
    answer = await host.client.request(method, "/functions/v1/nap", headers=OPEN)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


async def test_a_body_of_64_kib_is_taken_and_one_more_byte_is_not(host: Host) -> None:
    assert (await host.poke(content=b"x" * (BODY_LIMIT + 1))).status_code == 413
    assert not host.naps
    assert (await host.poke(content=b"x" * BODY_LIMIT)).status_code == 202


async def test_a_body_that_does_not_announce_its_size_is_bounded_too(host: Host) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(65):
            yield b"x" * 1024

    assert (await host.poke(content=chunks())).status_code == 413
    assert not host.naps


async def test_three_hundred_pokes_at_once_are_one_run(host: Host) -> None:
    answers = await asyncio.gather(*(host.poke() for _ in range(300)))
    said = [answer.json()["status"] for answer in answers]
    assert (said.count("accepted"), said.count("already_running")) == (1, 299)


async def test_a_run_that_cannot_be_made_is_500_without_its_reason(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_folder: FunctionFolder) -> None:
        raise RuntimeError("password=hush")

    monkeypatch.setattr(host.runs, "new_run", fails)
    answer = await host.poke()
    assert answer.status_code == 500
    assert "hush" not in answer.text
    assert host.runs.idle


async def test_a_host_that_stops_starts_nothing_and_says_so(host: Host) -> None:
    host.runs.stop()
    answer = await host.poke()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert (await host.client.get("/readyz")).status_code == 503
    assert (await host.client.get("/healthz")).status_code == 200


async def test_ready_shows_knob_issues_and_is_not_failed_by_them(host: Host) -> None:
    answer = await host.client.get("/readyz")
    assert answer.status_code == 200
    [issue] = answer.json()["knob_issues"]["host"]
    assert (issue["env"], issue["kind"], issue["effective"]) == (
        "FAIRLEASE_MAX_CRASHES",
        "empty",
        5,
    )


async def test_not_ready_while_the_database_cannot_serve(host: Host) -> None:
    host.state[0] = Readiness(problems=("the database does not answer",))
    answer = await host.client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["problems"] == ["the database does not answer"]


async def test_metrics_are_open_and_answered_in_the_type_that_was_asked_for(host: Host) -> None:
    answer = await host.client.get("/metrics", headers={"accept": "text/plain"})
    assert (answer.status_code, answer.text) == (200, "asked for text/plain")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4"


async def test_a_body_that_does_not_come_is_given_up_after_its_time(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "BODY_SECONDS", 0.01)

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.Event().wait()

    answer = await host.poke(content=chunks())
    assert (answer.status_code, answer.headers["connection"]) == (408, "close")
    assert not host.naps
