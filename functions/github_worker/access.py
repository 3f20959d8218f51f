"""Who may do what in a repository: compare with what is, change only what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlease import Dead
from github_worker.answers import missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from github_worker.client import OrgApi

# GitHub sets "pull" and "push" but lists them as roles "read" and "write".
PERMISSION_OF_ROLE = {"read": "pull", "write": "push"}
ROLE_OF_PERMISSION = {permission: role for role, permission in PERMISSION_OF_ROLE.items()}
NAMES_SHOWN = 5


async def sync_collaborators(
    api: OrgApi, name: str, wanted: Mapping[str, str], *, remove_others: bool
) -> list[str]:
    """Direct collaborators and open invitations, by login; organization owners are neither.

    Returns the logins that GitHub does not know; all others are in sync.
    """
    wanted = {login.lower(): permission for login, permission in wanted.items()}
    current = await collaborators(api, name)
    invited = await _invitations(api, name)
    unknown: list[str] = []
    for login, permission in wanted.items():
        if login in invited:
            await _change_invitation(api, name, *invited[login], permission)
        elif current.get(login) != permission and not await _grant(api, name, login, permission):
            unknown.append(login)
    if remove_others:
        for login in current.keys() - wanted.keys():
            await api.call("DELETE", *_repo(api, name), "collaborators", login, accept={404})
        for login in invited.keys() - wanted.keys():
            await _withdraw(api, name, invited[login][0])
    return unknown


async def sync_teams(
    api: OrgApi, name: str, wanted: Mapping[str, str], *, remove_others: bool
) -> list[str]:
    """Teams by slug. Returns the slugs that the organization does not have."""
    wanted = {slug.lower(): permission for slug, permission in wanted.items()}
    current = await teams(api, name)
    absent: list[str] = []
    for slug, permission in wanted.items():
        if current.get(slug) == permission:
            continue
        body = {"permission": permission}
        answer = await api.call("PUT", *_team_repo(api, slug, name), body=body, accept={404})
        if answer.status == 404:  # noqa: PLR2004
            absent.append(slug)
    if remove_others:
        for slug in current.keys() - wanted.keys():
            await api.call("DELETE", *_team_repo(api, slug, name), accept={404})
    return absent


async def collaborators(api: OrgApi, name: str) -> dict[str, str]:
    """Direct collaborators, login (lower case) to permission."""
    listed = api.pages(*_repo(api, name), "collaborators", affiliation="direct")
    return {item["login"].lower(): _permission(item["role_name"]) async for item in listed}


async def teams(api: OrgApi, name: str) -> dict[str, str]:
    """Teams with access, slug to permission."""
    listed = api.pages(*_repo(api, name), "teams")
    return {item["slug"].lower(): _permission(item["permission"]) async for item in listed}


async def withdraw_invitations(api: OrgApi, name: str) -> None:
    for invitation, _ in (await _invitations(api, name)).values():
        await _withdraw(api, name, invitation)


def require_known(unknown: Sequence[str]) -> None:
    """Raise `Dead` naming accounts that do not exist; the work for all others is done."""
    if unknown:
        raise Dead(f"no GitHub account {_some_of(unknown)}; all others are in sync")


def require_teams(api: OrgApi, absent: Sequence[str]) -> None:
    """A team that is missing may be made by another message: not yet, and at last dead."""
    if absent:
        raise missing(f"team {_some_of(absent)} in {api.org}", api.ctx.attempt)


def _some_of(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


async def _invitations(api: OrgApi, name: str) -> dict[str, tuple[str, str]]:
    """Open invitations, login (lower case) to their id and permission."""
    found: dict[str, tuple[str, str]] = {}
    async for item in api.pages(*_repo(api, name), "invitations"):
        invitee: Any = item.get("invitee")
        if isinstance(invitee, dict):
            found[invitee["login"].lower()] = (str(item["id"]), _permission(item["permissions"]))
    return found


async def _grant(api: OrgApi, name: str, login: str, permission: str) -> bool:
    parts = (*_repo(api, name), "collaborators", login)
    answer = await api.call("PUT", *parts, body={"permission": permission}, accept={404})
    return answer.status != 404  # noqa: PLR2004


async def _change_invitation(
    api: OrgApi, name: str, invitation: str, current: str, wanted: str
) -> None:
    if current != wanted:
        body = {"permissions": ROLE_OF_PERMISSION.get(wanted, wanted)}
        # Accepted or withdrawn in the meantime: the next sync sees a collaborator.
        parts = (*_repo(api, name), "invitations", invitation)
        await api.call("PATCH", *parts, body=body, accept={404})


async def _withdraw(api: OrgApi, name: str, invitation: str) -> None:
    await api.call("DELETE", *_repo(api, name), "invitations", invitation, accept={404})


def _repo(api: OrgApi, name: str) -> tuple[str, str, str]:
    return ("repos", api.org, name)


def _team_repo(api: OrgApi, slug: str, name: str) -> tuple[str, ...]:
    return ("orgs", api.org, "teams", slug, "repos", api.org, name)


def _permission(listed: str) -> str:
    return PERMISSION_OF_ROLE.get(listed, listed)
