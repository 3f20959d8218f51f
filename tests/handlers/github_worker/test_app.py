"""A GitHub App: it signs, finds its installation, and calls with the installation's token."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from fairlease import ConfigurationError, Dead, RateLimited
from fairlease.local.github.process import GitHubServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import Tenant

APP_ID = "4711"


def private_pem(key: rsa.RSAPrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()


def signed(key: rsa.RSAPrivateKey, **claims: Any) -> str:
    """A token of the App; times are seconds from now, None leaves a claim out."""
    given = {"iss": APP_ID, "iat": 0, "exp": 300} | claims
    now = int(time.time())
    said = {k: now + v if k != "iss" else v for k, v in given.items() if v is not None}
    return jwt.encode(said, private_pem(key), "RS256")


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def github(
    key: rsa.RSAPrivateKey, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GitHubServer]:
    file: Path = tmp_path_factory.mktemp("app") / "public.pem"
    file.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    arguments = ("--app-id", APP_ID, "--app-public-key", str(file), "--token", "unused")
    with GitHubServer(*arguments) as server:
        yield server


@pytest.fixture(autouse=True)
def app(tenant: Tenant, key: rsa.RSAPrivateKey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_APP_ID", APP_ID)
    # As secret stores keep it: one line.
    monkeypatch.setenv("GITHUB_APP_PRIVATE_KEY", private_pem(key).replace("\n", "\\n"))


async def test_it_works_with_the_token_of_the_organizations_installation(tenant: Tenant) -> None:
    for name in ("hw-1", "hw-2"):
        await tenant.deliver("create_repo", repository=name)

    assert tenant.meter["repos_created"] == 2
    assert tenant.meter["tokens_issued"] == 1


@pytest.mark.parametrize("tenant", [{"installed": False}], indirect=True)
async def test_an_organization_without_the_app_is_dead(tenant: Tenant) -> None:
    with pytest.raises(Dead, match="does not exist or has not installed the App"):
        await tenant.deliver("create_repo", repository="hw")


async def test_a_revoked_token_costs_one_attempt(tenant: Tenant) -> None:
    await tenant.deliver("create_repo", repository="hw-1")
    tenant.server.revoke_tokens()

    with pytest.raises(ConfigurationError, match="401"):
        await tenant.deliver("create_repo", repository="hw-2")
    await tenant.deliver("create_repo", repository="hw-2")

    assert tenant.meter["repos_created"] == 2


async def test_an_app_that_was_taken_away_is_dead_at_the_second_attempt(tenant: Tenant) -> None:
    await tenant.deliver("create_repo", repository="hw-1")
    tenant.server.put_org(tenant.login, installed=False)
    tenant.server.revoke_tokens()

    with pytest.raises(ConfigurationError, match="401"):
        await tenant.deliver("create_repo", repository="hw-2")
    with pytest.raises(Dead, match="has not installed the App"):
        await tenant.deliver("create_repo", repository="hw-2")


async def test_a_wrong_key_names_both_variables(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = rsa.generate_private_key(65537, 2048)
    monkeypatch.setenv("GITHUB_APP_PRIVATE_KEY", private_pem(other))

    with pytest.raises(ConfigurationError, match="renew GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY"):
        await tenant.deliver("create_repo", repository="hw")


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({}, None),
        ({"exp": 660}, "too far in the future"),
        ({"iat": -700, "exp": -100}, "could not be decoded"),
        ({"exp": None}, "could not be decoded"),
        ({"iss": "1"}, "Integration not found"),
    ],
)
def test_the_server_takes_only_the_tokens_that_github_takes(
    tenant: Tenant, key: rsa.RSAPrivateKey, claims: dict[str, Any], said: str | None
) -> None:
    answer = httpx.get(
        f"{tenant.server.url}/orgs/{tenant.login}/installation",
        headers={"authorization": f"Bearer {signed(key, **claims)}"},
    )
    assert answer.status_code == (401 if said else 200)
    assert said is None or said in answer.json()["message"]


def test_a_token_of_one_installation_opens_its_own_organization_alone(
    tenant: Tenant, key: rsa.RSAPrivateKey
) -> None:
    other = f"{tenant.login}-other"
    tenant.server.put_org(other)
    with httpx.Client(base_url=tenant.server.url) as client:
        app = {"authorization": f"Bearer {signed(key)}"}
        found = client.get(f"/orgs/{tenant.login}/installation", headers=app).json()
        issued = client.post(f"/app/installations/{found['id']}/access_tokens", headers=app).json()
        client.headers["authorization"] = f"token {issued['token']}"
        answers = [client.get(f"/orgs/{org}").status_code for org in (tenant.login, other)]
    assert answers == [200, 404]


async def test_an_installation_that_vanishes_before_its_token_is_said(tenant: Tenant) -> None:
    tenant.break_next(kind="status", path="/access_tokens", status=404, body="{}")

    with pytest.raises(ConfigurationError, match=r"no installation token for 'Acme-\d+' \(404\)"):
        await tenant.deliver("create_repo", repository="hw")


@pytest.mark.parametrize("status", [403, 429])
async def test_a_limit_on_tokens_holds_up_the_org(tenant: Tenant, status: int) -> None:
    headers = {"retry-after": "31"}
    tenant.break_next(kind="status", path="/access_tokens", status=status, headers=headers)

    with pytest.raises(RateLimited) as limited:
        await tenant.deliver("create_repo", repository="hw")

    assert limited.value.retry_after == 31.0
