from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from fairlease import ConfigurationError
from github_worker import connection
from github_worker.settings import DEFAULT_API_URL, AppKey, load_settings

if TYPE_CHECKING:
    from conftest import Tenant

CREDENTIALS = ("GITHUB_TOKEN", "GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*CREDENTIALS, "GITHUB_API_URL", "GITHUB_TIMEOUT_SECONDS"):
        monkeypatch.delenv(name, raising=False)


def test_a_token_alone_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", " ghp_1 ")

    settings = load_settings()

    assert not isinstance(settings.credentials, AppKey)
    assert settings.credentials.get_secret_value() == "ghp_1"
    assert settings.api_url == DEFAULT_API_URL
    assert "ghp_1" not in repr(settings)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "GITHUB_TOKEN is missing"),
        ({"GITHUB_TOKEN": ""}, "GITHUB_TOKEN is missing"),
        ({"GITHUB_TOKEN": "  "}, "GITHUB_TOKEN is missing"),
        ({"GITHUB_TOKEN": "a b"}, "GITHUB_TOKEN is malformed"),
        ({"GITHUB_TOKEN": "ä"}, "GITHUB_TOKEN is malformed"),
        ({"GITHUB_APP_ID": "7"}, "GITHUB_APP_PRIVATE_KEY is missing"),
        ({"GITHUB_APP_PRIVATE_KEY": "x"}, "GITHUB_APP_ID is missing"),
        ({"GITHUB_APP_ID": "7", "GITHUB_APP_PRIVATE_KEY": "s3cret"}, "PRIVATE_KEY is malformed"),
        ({"GITHUB_TOKEN": "t", "GITHUB_API_URL": "api.github.com"}, "GITHUB_API_URL is malformed"),
        ({"GITHUB_TOKEN": "t", "GITHUB_API_URL": "ftp://x"}, "GITHUB_API_URL is malformed"),
        ({"GITHUB_TOKEN": "t", "GITHUB_API_URL": "http://x:99999"}, "GITHUB_API_URL is malformed"),
        ({"GITHUB_TOKEN": "t", "GITHUB_API_URL": "http://u:p@x"}, "GITHUB_API_URL is malformed"),
        ({"GITHUB_TOKEN": "t", "GITHUB_TIMEOUT_SECONDS": "soon"}, "GITHUB_TIMEOUT_SECONDS is"),
        ({"GITHUB_TOKEN": "t", "GITHUB_TIMEOUT_SECONDS": "0"}, "GITHUB_TIMEOUT_SECONDS is"),
        ({"GITHUB_TOKEN": "t", "GITHUB_TIMEOUT_SECONDS": "inf"}, "GITHUB_TIMEOUT_SECONDS is"),
    ],
)
def test_what_is_missing_or_malformed_is_named_without_its_value(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], said: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(ConfigurationError, match=said) as refused:
        load_settings()

    assert "s3cret" not in str(refused.value)
    assert "\n" not in str(refused.value)


async def test_a_missing_token_is_said_by_the_handler(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")

    with pytest.raises(ConfigurationError, match="GITHUB_TOKEN is missing"):
        await tenant.deliver("create_repo", repository="hw")


async def test_the_client_of_an_organization_is_made_once(tenant: Tenant) -> None:
    first, second = await asyncio.gather(
        *(
            connection.connect(tenant.context(org=org))
            for org in (tenant.login, tenant.login.upper())
        )
    )

    assert first.github is second.github


async def test_many_organizations_do_not_keep_many_clients(tenant: Tenant) -> None:
    first = await connection.connect(tenant.context(org="org-0"))
    for number in range(1, connection.ORGS_KEPT + 1):
        await connection.connect(tenant.context(org=f"org-{number}"))

    again = await connection.connect(tenant.context(org="org-0"))

    assert first.github is not again.github


async def test_requests_share_a_connection(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        with contextlib.suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(count, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setenv("GITHUB_API_URL", f"http://127.0.0.1:{port}/api/v3/")
    api = await connection.connect(tenant.context())
    for _ in range(5):
        await api.call("GET", "orgs", tenant.login)

    assert accepted == 1
    await connection.close()
    server.close()


async def test_after_close_the_next_call_opens_again(tenant: Tenant) -> None:
    for _ in range(2):
        await tenant.deliver("create_repo", repository="hw")
        await connection.close()

    assert tenant.meter["repos_created"] == 1


def test_another_event_loop_has_connections_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "t")

    async def transport() -> object:
        connections = connection.connections_of_this_loop()
        await connection.close()
        return connections

    assert asyncio.run(transport()) is not asyncio.run(transport())
