"""What becomes of a message for every kind of answer, over real HTTP."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from fairlease import ConfigurationError, Dead, RateLimited, Retry
from github_worker.answers import GitHubUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Tenant

pytestmark = pytest.mark.parametrize(
    "tenant", [{"repos": {"hw": {"collaborators": {"ann": "push"}}}}], indirect=True
)


async def sync(tenant: Tenant) -> None:
    await tenant.deliver("sync_repo_permissions", repository="hw", collaborators={"ann": "push"})


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("17", 17.0),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 86_400.0),
        ("9" * 30, 86_400.0),
        ("-3", None),
        ("whenever", None),
    ],
)
async def test_a_secondary_limit_holds_up_the_org(
    tenant: Tenant, status: int, text: str, seconds: float | None
) -> None:
    tenant.break_next(kind="status", status=status, headers={"retry-after": text})

    with pytest.raises(RateLimited) as limited:
        await sync(tenant)

    assert (limited.value.scope, limited.value.retry_after) == ("org", seconds)


async def test_a_primary_limit_holds_up_the_org_until_its_reset(tenant: Tenant) -> None:
    tenant.server.put_org(tenant.login, limits={"primary": 2, "window_seconds": 900})

    await tenant.deliver("create_repo", repository="hw")

    with pytest.raises(RateLimited) as limited:
        await tenant.deliver("create_repo", repository="hw")

    assert limited.value.reason == "GitHub's primary rate limit (403)"
    assert isinstance(limited.value.retry_after, float)
    assert 890 < limited.value.retry_after <= 902


async def test_too_many_at_once_meet_the_measured_secondary_limit(tenant: Tenant) -> None:
    limits = {"max_concurrent": 2, "retry_after_seconds": 23, "status": 429}
    tenant.server.put_org(tenant.login, limits=limits)
    tenant.break_next(kind="slow", seconds=0.3, times=9)

    found = await asyncio.gather(
        *(tenant.deliver("create_repo", repository=f"hw-{i}") for i in range(4)),
        return_exceptions=True,
    )

    limited = [raised for raised in found if isinstance(raised, RateLimited)]
    assert {verdict.retry_after for verdict in limited} == {23.0}
    assert len(limited) == 2
    assert tenant.meter["repos_created"] == 2


@pytest.mark.parametrize("status", [500, 502, 503, 504, 520, 408, 425])
async def test_a_broken_gateway_is_tried_again(tenant: Tenant, status: int) -> None:
    tenant.break_next(kind="status", status=status)

    with pytest.raises(
        GitHubUnavailable, match=f"GET /repos/{tenant.login}/hw: {status}"
    ) as raised:
        await sync(tenant)

    assert "<html>" not in str(raised.value)


async def test_a_server_that_says_when_to_come_back_is_obeyed(tenant: Tenant) -> None:
    tenant.break_next(kind="status", status=503, headers={"retry-after": "7"})

    with pytest.raises(Retry) as later:
        await sync(tenant)

    assert later.value.after == 7.0


@pytest.mark.parametrize("status", [400, 402, 405, 406, 409, 410, 415, 422, 451])
async def test_another_refusal_is_dead_with_githubs_words(tenant: Tenant, status: int) -> None:
    body = '{"message": "No way", "errors": [{"resource": "Repo", "code": "custom"}, "and so on"]}'
    tenant.break_next(kind="status", status=status, body=body)

    with pytest.raises(Dead) as dead:
        await sync(tenant)

    assert dead.value.reason == (
        f"GET /repos/{tenant.login}/hw: {status}: No way; Repo custom; and so on"
    )


@pytest.mark.parametrize("body", ["", "[]", "null", '{"message": 7}', "<html>", '{"errors": 1}'])
async def test_a_refusal_without_githubs_words_is_dead_too(tenant: Tenant, body: str) -> None:
    tenant.break_next(kind="status", status=422, body=body)

    with pytest.raises(Dead, match="GitHub gave no reason"):
        await sync(tenant)


async def test_a_403_about_permissions_is_no_limit(tenant: Tenant) -> None:
    body = '{"message": "Resource not accessible by integration"}'
    tenant.break_next(kind="status", status=403, body=body)

    with pytest.raises(Dead, match="403: Resource not accessible by integration"):
        await sync(tenant)


async def test_refused_credentials_name_their_variable_and_never_their_value(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret123")

    with pytest.raises(ConfigurationError, match=r"401\); renew GITHUB_TOKEN") as refused:
        await sync(tenant)

    assert "ghp_secret123" not in repr(refused.value)


async def test_a_connection_cut_in_mid_answer_is_tried_again(tenant: Tenant) -> None:
    tenant.break_next(kind="cut")

    with pytest.raises(GitHubUnavailable, match="peer closed connection"):
        await sync(tenant)


async def test_a_connection_that_is_reset_is_tried_again(tenant: Tenant) -> None:
    tenant.break_next(kind="reset")

    with pytest.raises(GitHubUnavailable, match=f"/repos/{tenant.login}/hw: ") as raised:
        await sync(tenant)

    reasons = [str(error) for error in _causes(raised.value)]
    assert any("Connection reset by peer" in reason for reason in reasons), reasons
    await sync(tenant)


async def test_a_connection_that_is_refused_is_tried_again(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("GITHUB_API_URL", f"http://127.0.0.1:{port}")

    with pytest.raises(GitHubUnavailable, match=f"/repos/{tenant.login}/hw: "):
        await sync(tenant)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


async def test_a_slow_answer_is_tried_again(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TIMEOUT_SECONDS", "0.1")
    tenant.break_next(kind="slow", seconds=5)

    with pytest.raises(GitHubUnavailable, match="ReadTimeout"):
        await sync(tenant)


async def test_an_answer_that_is_no_json_changes_nothing(tenant: Tenant) -> None:
    for path in ("/hw", "/collaborators"):
        tenant.break_next(kind="status", path=path, status=200, body="<html>maintenance</html>")

        with pytest.raises(GitHubUnavailable, match="200 without JSON"):
            await sync(tenant)

    tenant.break_next(kind="status", path="/collaborators", status=200, body="{}")
    with pytest.raises(GitHubUnavailable, match="not a listing"):
        await sync(tenant)
    assert tenant.meter["messages_done"] == []
