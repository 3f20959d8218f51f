"""Teams and who is in them: compare with what is, change only what differs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlease import Dead

if TYPE_CHECKING:
    from github_worker.client import OrgApi
    from github_worker.payloads import SyncTeam


@dataclass(frozen=True, slots=True)
class TeamKind:
    """How a team of this kind is made, and the role of those in it."""

    privacy: str
    role: str


# Students do not see who is in other teams; staff is found by name and may manage its members.
STUDENTS = TeamKind(privacy="secret", role="member")
STAFF = TeamKind(privacy="closed", role="maintainer")


async def sync(api: OrgApi, args: SyncTeam, kind: TeamKind) -> list[str]:
    """Make the team and its members those of the message; returns logins that GitHub refuses."""
    slug = await _ensure(api, args, kind)
    wanted = {login.lower() for login in args.members}
    current = await _members(api, slug)
    invited = {item["login"].lower() async for item in _invitations(api, slug)}
    refused = [
        login
        for login in sorted(wanted - invited)
        if current.get(login) != kind.role and not await _join(api, slug, login, kind.role)
    ]
    if args.remove_others:
        for login in sorted((current.keys() | invited) - wanted):
            await api.call("DELETE", *_team(api, slug), "memberships", login, accept={404})
    return refused


async def _ensure(api: OrgApi, args: SyncTeam, kind: TeamKind) -> str:
    """The slug of the team, which is made if it is missing."""
    asked = slug_of(args.team)
    if not asked:
        raise Dead(f"team {args.team!r} has no letter or digit; give it a name")
    found = await api.get(*_team(api, asked))
    if found is None:
        found = await _create(api, args, kind, asked)
    return str(found["slug"])


async def _create(api: OrgApi, args: SyncTeam, kind: TeamKind, asked: str) -> dict[str, Any]:
    body = {"name": args.team, "description": args.description, "privacy": kind.privacy}
    answer = await api.call("POST", "orgs", api.org, "teams", body=body, accept={404, 422})
    if answer.status == 404:  # noqa: PLR2004
        raise Dead(f"organization {api.org!r} does not exist, or {api.credentials} may not see it")
    if answer.status != 422:  # noqa: PLR2004
        return dict(answer.data)
    # Somebody else was faster, or the name is no good.
    found = await api.get(*_team(api, asked))
    if not isinstance(found, dict):
        raise Dead(f"create team {args.team!r}: 422: {answer.said or 'GitHub gave no reason'}")
    return found


async def _members(api: OrgApi, slug: str) -> dict[str, str]:
    """Login (lower case) to role. An owner of the organization is a maintainer of every team."""
    found: dict[str, str] = {}
    for role in ("member", "maintainer"):
        async for item in api.pages(*_team(api, slug), "members", role=role):
            found[item["login"].lower()] = role
    return found


async def _invitations(api: OrgApi, slug: str) -> Any:
    async for item in api.pages(*_team(api, slug), "invitations"):
        # An invitation by e-mail has no login.
        if isinstance(item.get("login"), str):
            yield item


async def _join(api: OrgApi, slug: str, login: str, role: str) -> bool:
    parts = (*_team(api, slug), "memberships", login)
    answer = await api.call("PUT", *parts, body={"role": role}, accept={404, 422})
    return answer.status < 400  # noqa: PLR2004


def slug_of(name: str) -> str:
    """The slug that GitHub gives a team of this name."""
    return re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")


def _team(api: OrgApi, slug: str) -> tuple[str, ...]:
    return ("orgs", api.org, "teams", slug)
