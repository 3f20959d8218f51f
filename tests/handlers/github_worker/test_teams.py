from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from fairlease import Dead

if TYPE_CHECKING:
    from conftest import Tenant

SETUP = {
    "members": {"ann": "member", "bob": "member", "eve": "member", "root": "admin"},
    "teams": {"Week 1": {"members": {"ann": "member", "eve": "member", "bob": "maintainer"}}},
}
pytestmark = pytest.mark.parametrize("tenant", [SETUP], indirect=True)


@pytest.mark.parametrize(
    ("method", "role", "privacy"),
    [("sync_student_team", "member", "secret"), ("sync_staff_team", "maintainer", "closed")],
)
async def test_a_missing_team_is_made_with_its_members(
    tenant: Tenant, method: str, role: str, privacy: str
) -> None:
    await tenant.deliver(method, team="Group A!", members=["Ann", "guest"])

    team = tenant.state["teams"]["group-a"]
    assert team["privacy"] == privacy
    assert (team["members"], team["pending"]) == ({"ann": role}, {"guest": role})


async def test_members_become_those_of_the_message(tenant: Tenant) -> None:
    await tenant.deliver("sync_student_team", team="Week 1", members=["ann", "bob"])

    assert tenant.state["teams"]["week-1"]["members"] == {"ann": "member", "bob": "member"}


async def test_others_stay_where_the_message_says_so(tenant: Tenant) -> None:
    await tenant.deliver("sync_student_team", team="week-1", members=["ann"], remove_others=False)

    assert tenant.state["teams"]["week-1"]["members"].keys() == {"ann", "bob", "eve"}


async def test_a_second_delivery_changes_nothing(tenant: Tenant) -> None:
    await tenant.deliver("sync_student_team", team="Week 1", members=["ann", "guest"])
    ctx = tenant.context()

    await tenant.deliver("sync_student_team", ctx=ctx, team="Week 1", members=["ann", "guest"])

    assert f"async_calls/{ctx.msg_id}" not in tenant.meter["messages_done"]


async def test_an_invitation_that_is_no_longer_wanted_is_withdrawn(tenant: Tenant) -> None:
    for members in (["guest"], []):
        await tenant.deliver("sync_student_team", team="Week 1", members=members)

    assert tenant.state["teams"]["week-1"]["pending"] == {}


async def test_two_deliveries_at_once_make_one_team(tenant: Tenant) -> None:
    tenant.break_next(kind="slow", method="POST", path="/teams", seconds=0.15)

    await asyncio.gather(
        *(tenant.deliver("sync_staff_team", team="Staff", members=["ann"]) for _ in range(2))
    )

    assert tenant.state["teams"]["staff"]["members"] == {"ann": "maintainer"}
    assert tenant.meter["statuses"]["422"] == 1


async def test_logins_that_cannot_join_are_named_and_the_others_join(tenant: Tenant) -> None:
    tenant.server.add_missing_users(["ghost-login"])

    with pytest.raises(Dead, match=f"no GitHub account {tenant.login.lower()}, ghost-login; all"):
        await tenant.deliver(
            "sync_student_team", team="Week 1", members=["ghost-login", tenant.login, "root"]
        )

    assert tenant.state["teams"]["week-1"]["members"] == {"root": "member"}


async def test_a_team_of_several_pages_is_read_to_its_end(tenant: Tenant) -> None:
    everyone = {f"student-{number}": "member" for number in range(230)}
    tenant.server.put_org(tenant.login, members=everyone, teams={"all": {"members": everyone}})

    await tenant.deliver("sync_student_team", team="all", members=list(everyone))

    assert set(tenant.meter["statuses"]) == {"200"}


async def test_a_team_without_a_name_is_dead(tenant: Tenant) -> None:
    with pytest.raises(Dead, match="no letter or digit"):
        await tenant.deliver("sync_student_team", team="!?", members=[])


async def test_a_team_of_an_organization_that_does_not_exist_is_dead(tenant: Tenant) -> None:
    tenant.login = "nobody-here"

    with pytest.raises(Dead, match="organization 'nobody-here' does not exist"):
        await tenant.deliver("sync_student_team", team="Week 1", members=[])
