"""A message calls the organization that its slot is charged to, and no other (rule D32)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fairlease import Dead
from github_worker import connection
from github_worker.client import OtherOrg, require_own_path

if TYPE_CHECKING:
    from conftest import Tenant


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("create_repo", {"org": "other", "repository": "hw"}),
        ("create_repo", {"repository": "other/hw"}),
        ("create_repo", {"repository": "hw", "template": "other/template"}),
        ("sync_repo_permissions", {"repository": "other/hw"}),
        ("sync_student_team", {"org": "other", "team": "a", "members": []}),
        ("archive_repo_and_lock", {"repository": "other/hw"}),
        ("fix_assignment_repo_permissions", {"org": "other", "prefix": "hw"}),
    ],
)
async def test_a_message_for_another_organization_is_dead_before_any_call(
    tenant: Tenant, method: str, args: dict[str, Any]
) -> None:
    with pytest.raises(Dead, match=r"charged to org 'Acme-.*' but would call 'other'"):
        await tenant.deliver(method, **args)

    assert tenant.meter == {}


async def test_case_makes_no_other_organization(tenant: Tenant) -> None:
    folded = tenant.context(org=tenant.login.lower())

    await tenant.deliver("create_repo", ctx=folded, repository=f"{tenant.login.upper()}/hw")

    assert tenant.meter["repos_created"] == 1
    assert tenant.server.measure()["mismatches"] == 0


@pytest.mark.parametrize(
    "parts",
    [
        ("repos", "other", "hw"),
        ("orgs", "other"),
        ("orgs", "other", "installation"),
        ("user", "repos"),
        ("repositories", "77"),
    ],
)
async def test_the_client_itself_refuses_another_organization(
    tenant: Tenant, parts: tuple[str, ...]
) -> None:
    tenant.server.put_org("other")
    api = await connection.connect(tenant.context())

    with pytest.raises(OtherOrg, match="send the message for that org"):
        await api.call("GET", *parts)

    assert "other" not in tenant.server.measure()["orgs"]


@pytest.mark.parametrize(
    "path",
    [
        "/repos/acme/hw",
        "/repos/ACME/hw/collaborators/ann",
        "/orgs/acme",
        "/orgs/acme/teams/staff/repos/acme/hw",
        "/app/installations/12/access_tokens",
    ],
)
def test_paths_of_the_organization_pass(path: str) -> None:
    require_own_path("acme", "/", path)
    require_own_path("acme", "/api/v3/", f"/api/v3{path}")


@pytest.mark.parametrize(
    "path",
    [
        "/repos/acme2/hw",
        "/repos/acm/e",
        "/orgs/acme/../other/repos",
        "/orgs/acme/%2e%2E/other/repos",
        "/orgs/acme/./repos",
        "/repos/acme/hw%2F..%2F..%2Fother",
        "/repos/acme/a%5C..%5Cb",
        "/orgs/acme%2F..%2Fother",
        "/orgs/acme/teams/staff/repos/other/hw",
        "/app/installations/12/access_tokens/x",
        "/app/installations",
        "//repos/acme/hw",
        "/",
        "",
    ],
)
def test_any_other_path_does_not(path: str) -> None:
    with pytest.raises(OtherOrg):
        require_own_path("acme", "/", path)


@pytest.mark.parametrize(
    "org",
    ["(unresolved)", "a/b", "..", "", " ", "a" * 300, "añb", "a\n", "a b", "-a", "\u212aelvin"],
)
async def test_an_org_that_github_cannot_have_is_dead(tenant: Tenant, org: str) -> None:
    with pytest.raises(Dead):
        await tenant.deliver("create_repo", ctx=tenant.context(org=org), repository="hw")
    with pytest.raises(Dead, match="no GitHub organization name"):
        await connection.connect(tenant.context(org=org))


@pytest.mark.parametrize("name", ["..", ".", "a/b/c", "a b", "a?b", "a#b", "ä", "", "x" * 101])
async def test_a_repository_name_that_github_cannot_have_is_dead(tenant: Tenant, name: str) -> None:
    with pytest.raises(Dead, match=r"args\.repository"):
        await tenant.deliver("create_repo", repository=name)

    assert tenant.meter == {}
