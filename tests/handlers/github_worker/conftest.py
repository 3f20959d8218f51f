from __future__ import annotations

import asyncio
import itertools
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from fairlease import Context
from fairlease.clock import SystemClock
from fairlease.local.github.process import GitHubServer
from fairlease.messages.envelope import open_envelope
from github_worker import connection
from github_worker.handlers import worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def github() -> Iterator[GitHubServer]:
    """One server for the whole run; every test has organizations of its own."""
    with GitHubServer() as server:
        yield server


@pytest.fixture
def trusting_nobody() -> ssl.SSLContext:
    """For a client over plain HTTP: reading the certificates would take longer than the test."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@dataclass(slots=True)
class Tenant:
    """An organization at the server, and deliveries that are charged to it."""

    server: GitHubServer
    login: str
    setup: dict[str, Any] = field(default_factory=dict)
    sender: Any = None

    def context(self, **changes: Any) -> Context:
        clock = SystemClock()
        given = {
            "org": self.login,
            "queue": "async_calls",
            "method": "",
            "msg_id": next(_numbers),
            "attempt": 1,
            "clock": clock,
            "deadline": clock.monotonic() + 110,
        }
        if self.sender is not None:
            given["sender"] = self.sender
        return Context(**(given | changes))

    async def deliver(self, method: str, *, ctx: Context | None = None, **args: Any) -> None:
        """Run the handler as the drain does; what it raises is raised here."""
        body = {"method": method, "args": {"org": self.login, **args}}
        envelope = open_envelope(body, worker.handlers)
        await envelope.handler.function(envelope.arguments, ctx or self.context(method=method))

    @property
    def state(self) -> dict[str, Any]:
        return self.server.org(self.login)

    @property
    def meter(self) -> dict[str, Any]:
        return self.server.measure()["orgs"].get(self.login.lower(), {})

    async def until(self, condition: Callable[[dict[str, Any]], bool]) -> None:
        """Return when the server's count of this organization satisfies the condition."""
        while not condition(self.meter):  # noqa: ASYNC110 - the server is another process
            await asyncio.sleep(0.01)

    def break_next(self, **fault: Any) -> None:
        self.server.add_faults({"org": self.login, **fault})


@pytest.fixture
async def tenant(
    github: GitHubServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Tenant]:
    """A fresh organization; an indirect parameter says how it stands (`control.OrgSetup`)."""
    setup = getattr(request, "param", {})
    login = f"Acme-{next(_numbers)}"
    github.put_org(login, **setup)
    for name in ("GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_TOKEN", "local-token")
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    yield Tenant(github, login, setup)
    github.clear_faults()
    await connection.close()
