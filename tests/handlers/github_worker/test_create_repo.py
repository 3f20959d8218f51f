from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from fairlease import Dead

if TYPE_CHECKING:
    from conftest import Tenant


async def test_a_repository_is_made_as_asked(tenant: Tenant) -> None:
    await tenant.deliver(
        "create_repo", repository=f"{tenant.login}/homework-1", private=True, description="Week 1"
    )

    repo = tenant.state["repos"]["homework-1"]
    assert (repo["private"], repo["description"]) == (True, "Week 1")


async def test_a_second_delivery_makes_nothing(tenant: Tenant) -> None:
    for _ in range(2):
        await tenant.deliver("create_repo", repository="homework-1")

    assert tenant.meter["repos_created"] == 1
    assert tenant.meter["duplicate_creates"] == 0


async def test_the_loser_of_a_race_is_done_too(tenant: Tenant) -> None:
    tenant.break_next(kind="slow", method="POST", seconds=0.15)

    await asyncio.gather(
        *(tenant.deliver("create_repo", repository="homework-1") for _ in range(2))
    )

    assert tenant.meter["repos_created"] == 1
    assert tenant.meter["duplicate_creates"] == 1


async def test_a_crash_between_look_and_create_is_made_good(tenant: Tenant) -> None:
    tenant.break_next(kind="slow", method="POST", seconds=30)
    first = asyncio.ensure_future(tenant.deliver("create_repo", repository="homework-1"))
    await tenant.until(lambda meter: meter.get("requests") == 2 and meter["in_flight"] == 1)
    first.cancel()
    await asyncio.wait([first])
    assert tenant.state["repos"] == {}

    await tenant.deliver("create_repo", repository="homework-1")

    assert tenant.meter["repos_created"] == 1


@pytest.mark.parametrize("kind", ["status", "cut", "reset"])
async def test_a_lost_answer_does_not_make_a_second_repository(tenant: Tenant, kind: str) -> None:
    tenant.break_next(kind=kind, method="POST", after=True)
    with pytest.raises(Exception, match=r"502|peer closed|ReadError"):
        await tenant.deliver("create_repo", repository="homework-1")

    await tenant.deliver("create_repo", repository="homework-1")

    assert tenant.meter["repos_created"] == 1
    assert tenant.meter["duplicate_creates"] == 0


@pytest.mark.parametrize("tenant", [{"repos": {"homework-1": {"private": False}}}], indirect=True)
async def test_a_foreign_repository_of_the_name_is_dead(tenant: Tenant) -> None:
    with pytest.raises(Dead, match="a public repository has this name"):
        await tenant.deliver("create_repo", repository="homework-1", private=True)


@pytest.mark.parametrize("tenant", [{"moved": {"homework-1": 77}}], indirect=True)
async def test_a_renamed_repository_is_not_followed(tenant: Tenant) -> None:
    with pytest.raises(Dead, match=r"renamed or moved \(301\)"):
        await tenant.deliver("create_repo", repository="homework-1")


async def test_an_organization_that_does_not_exist_is_dead_and_says_so(tenant: Tenant) -> None:
    tenant.login = "nobody-here"

    with pytest.raises(Dead, match="organization 'nobody-here' does not exist"):
        await tenant.deliver("create_repo", repository="homework-1")


TEMPLATES = {"repos": {"template": {"is_template": True}, "plain": {}}}


@pytest.mark.parametrize("tenant", [TEMPLATES], indirect=True)
async def test_a_repository_is_made_from_a_template_once(tenant: Tenant) -> None:
    for _ in range(2):
        await tenant.deliver("create_repo", repository="homework-1", template="template")

    assert tenant.state["repos"]["homework-1"]["template"] == f"{tenant.login}/template"
    assert tenant.meter["repos_created"] == 1


@pytest.mark.parametrize("tenant", [TEMPLATES], indirect=True)
async def test_a_template_that_is_none_is_dead(tenant: Tenant) -> None:
    with pytest.raises(Dead, match="'plain' does not exist, or is no template"):
        await tenant.deliver("create_repo", repository="homework-1", template="plain")


@pytest.mark.parametrize("tenant", [TEMPLATES], indirect=True)
async def test_a_repository_from_another_template_is_dead(tenant: Tenant) -> None:
    await tenant.deliver("create_repo", repository="homework-1", template="template")

    with pytest.raises(Dead, match=r"made from .*/template has this name"):
        await tenant.deliver("create_repo", repository="homework-1", template="plain")
