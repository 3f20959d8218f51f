from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fairlease import Dead, RateLimited
from github_worker.answers import GitHubUnavailable

if TYPE_CHECKING:
    from conftest import Tenant

SETUP = {
    "members": {"ann": "member", "bob": "member"},
    "repos": {"hw": {"collaborators": {"ann": "admin", "bob": "pull"}}},
    "teams": {"staff": {"repos": {"hw": "maintain"}}},
}
pytestmark = pytest.mark.parametrize("tenant", [SETUP], indirect=True)


async def test_write_access_goes_and_the_repository_is_archived(tenant: Tenant) -> None:
    await tenant.deliver(
        "sync_repo_permissions",
        repository="hw",
        collaborators={"guest": "push"},
        remove_others=False,
    )

    await tenant.deliver("archive_repo_and_lock", repository="hw")

    repo = tenant.state["repos"]["hw"]
    assert repo["archived"] is True
    assert repo["collaborators"] == {"ann": "pull", "bob": "pull"}
    assert repo["invitations"] == {}
    assert repo["protection"]["main"]["lock_branch"] is True
    assert tenant.state["teams"]["staff"]["repos"] == {"hw": "pull"}


async def test_a_second_delivery_only_looks(tenant: Tenant) -> None:
    await tenant.deliver("archive_repo_and_lock", repository="hw")
    before = tenant.meter["requests"]

    await tenant.deliver("archive_repo_and_lock", repository="hw")

    assert tenant.meter["requests"] == before + 1


async def test_a_crash_before_the_last_step_is_made_good(tenant: Tenant) -> None:
    tenant.break_next(kind="status", method="PATCH", status=503)
    with pytest.raises(GitHubUnavailable):
        await tenant.deliver("archive_repo_and_lock", repository="hw")
    assert tenant.state["repos"]["hw"]["archived"] is False

    await tenant.deliver("archive_repo_and_lock", repository="hw")

    assert tenant.state["repos"]["hw"]["archived"] is True


@pytest.mark.parametrize("status", [403, 404])
async def test_a_branch_that_cannot_be_locked_does_not_stop_it(tenant: Tenant, status: int) -> None:
    tenant.break_next(kind="status", path="/protection", status=status, body="{}")

    await tenant.deliver("archive_repo_and_lock", repository="hw")

    assert tenant.state["repos"]["hw"]["archived"] is True


async def test_a_limit_is_never_taken_for_a_branch_that_cannot_be_locked(tenant: Tenant) -> None:
    headers = {"retry-after": "12"}
    tenant.break_next(kind="status", path="/protection", status=403, headers=headers)

    with pytest.raises(RateLimited):
        await tenant.deliver("archive_repo_and_lock", repository="hw")

    assert tenant.state["repos"]["hw"]["archived"] is False


async def test_a_repository_that_does_not_exist_is_dead_at_last(tenant: Tenant) -> None:
    with pytest.raises(Dead, match=r"repository .*/none does not exist \(after 9 attempts\)"):
        await tenant.deliver(
            "archive_repo_and_lock", ctx=tenant.context(attempt=9), repository="none"
        )
