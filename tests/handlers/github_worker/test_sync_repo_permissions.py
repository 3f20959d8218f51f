from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fairlease import Dead
from github_worker.answers import NotThereYet

if TYPE_CHECKING:
    from conftest import Tenant

SETUP = {
    "members": {"ann": "member", "bob": "member", "eve": "member", "root": "admin"},
    "repos": {"hw": {"collaborators": {"ann": "pull", "eve": "admin"}}, "old": {"archived": True}},
    "teams": {"Staff": {}, "Gone": {"repos": {"hw": "push"}}},
}
pytestmark = pytest.mark.parametrize("tenant", [SETUP], indirect=True)


async def test_collaborators_and_teams_become_those_of_the_message(tenant: Tenant) -> None:
    await tenant.deliver(
        "sync_repo_permissions",
        repository="hw",
        collaborators={"Ann": "push", "bob": "triage", "guest": "pull"},
        teams={"staff": "maintain"},
    )

    repo = tenant.state["repos"]["hw"]
    assert repo["collaborators"] == {"ann": "push", "bob": "triage"}
    assert [i["login"] for i in repo["invitations"].values()] == ["guest"]
    teams = tenant.state["teams"]
    assert (teams["staff"]["repos"], teams["gone"]["repos"]) == ({"hw": "maintain"}, {})


async def test_a_second_delivery_changes_nothing(tenant: Tenant) -> None:
    args = {"collaborators": {"ann": "push", "guest": "pull"}, "teams": {"staff": "pull"}}
    await tenant.deliver("sync_repo_permissions", repository="hw", **args)
    ctx = tenant.context()

    await tenant.deliver("sync_repo_permissions", ctx=ctx, repository="hw", **args)

    assert f"async_calls/{ctx.msg_id}" in tenant.meter["messages_seen"]
    assert f"async_calls/{ctx.msg_id}" not in tenant.meter["messages_done"]


async def test_an_open_invitation_is_changed_and_at_last_withdrawn(tenant: Tenant) -> None:
    for permission in ("pull", "push"):
        await tenant.deliver(
            "sync_repo_permissions", repository="hw", collaborators={"guest": permission}
        )
    (invitation,) = tenant.state["repos"]["hw"]["invitations"].values()
    assert invitation["permission"] == "push"

    await tenant.deliver("sync_repo_permissions", repository="hw", collaborators={})

    assert tenant.state["repos"]["hw"]["invitations"] == {}


async def test_others_keep_their_access_where_the_message_says_so(tenant: Tenant) -> None:
    await tenant.deliver(
        "sync_repo_permissions", repository="hw", collaborators={}, teams={}, remove_others=False
    )
    await tenant.deliver("sync_repo_permissions", repository="hw")

    assert tenant.state["repos"]["hw"]["collaborators"] == {"ann": "pull", "eve": "admin"}
    assert tenant.state["teams"]["gone"]["repos"] == {"hw": "push"}


async def test_an_unknown_account_is_named_after_all_others_are_in_sync(tenant: Tenant) -> None:
    tenant.server.add_missing_users(["ghost-login"])

    with pytest.raises(Dead, match="no GitHub account ghost-login; all others"):
        await tenant.deliver(
            "sync_repo_permissions",
            repository="hw",
            collaborators={"ghost-login": "pull", "bob": "push"},
        )

    assert tenant.state["repos"]["hw"]["collaborators"] == {"bob": "push"}


async def test_a_listing_of_several_pages_is_read_to_its_end(tenant: Tenant) -> None:
    everyone = {f"student-{number}": "push" for number in range(230)}
    tenant.server.put_org(tenant.login, repos={"big": {"collaborators": everyone}})

    await tenant.deliver("sync_repo_permissions", repository="big", collaborators=everyone)

    assert set(tenant.meter["statuses"]) == {"200"}
    assert tenant.state["repos"]["big"]["collaborators"] == everyone


@pytest.mark.parametrize(
    "missing",
    [{"repository": "none", "collaborators": {}}, {"repository": "hw", "teams": {"new": "pull"}}],
)
async def test_what_another_message_may_make_is_waited_for_then_dead(
    tenant: Tenant, missing: dict[str, str]
) -> None:
    with pytest.raises(NotThereYet, match="does not exist yet"):
        await tenant.deliver("sync_repo_permissions", **missing)

    with pytest.raises(Dead, match=r"does not exist \(after 5 attempts\)"):
        await tenant.deliver("sync_repo_permissions", ctx=tenant.context(attempt=5), **missing)


async def test_an_archived_repository_is_dead_with_githubs_words(tenant: Tenant) -> None:
    with pytest.raises(Dead, match="403: Repository was archived so is read-only"):
        await tenant.deliver(
            "sync_repo_permissions", repository="old", collaborators={"ann": "pull"}
        )


async def test_an_organization_that_does_not_exist_is_dead_at_once(tenant: Tenant) -> None:
    tenant.login = "nobody-here"

    with pytest.raises(Dead, match="organization 'nobody-here' does not exist"):
        await tenant.deliver("sync_repo_permissions", repository="hw", collaborators={})
