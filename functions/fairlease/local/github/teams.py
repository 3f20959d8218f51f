"""Endpoints of teams: look, create, change, members, memberships."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from fairlease.local.github import answers, shapes
from fairlease.local.github.pages import paginated
from fairlease.local.github.repos import body_of
from fairlease.local.github.world import Org, Team, slug_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from fairlease.local.github.gate import Api

PRIVACIES = ("secret", "closed")
ROLES = ("member", "maintainer")


def _found(api: Api, request: Request) -> tuple[Org, Team]:
    org = api.world.org(request.path_params["org"])
    return org, org.team(request.path_params["slug"])


async def get_team(api: Api, request: Request) -> Response:
    return JSONResponse(shapes.team(_found(api, request)[1]))


async def create_team(api: Api, request: Request) -> Response:
    org = api.world.org(request.path_params["org"])
    wanted = await body_of(request)
    name = wanted.get("name")
    if not isinstance(name, str) or not slug_of(name):
        raise answers.invalid("Team", "name", "missing_field")
    privacy = wanted.get("privacy", "secret")
    if privacy not in PRIVACIES:
        raise answers.invalid("Team", "privacy", "invalid")
    slug = slug_of(name)
    if slug in org.teams:
        raise answers.invalid("Team", "name", "already_exists", "Name must be unique for this org")
    team = Team(name, slug, privacy, wanted.get("description"))
    org.teams[slug] = team
    return JSONResponse(shapes.team(team), status_code=201)


async def update_team(api: Api, request: Request) -> Response:
    _, team = _found(api, request)
    wanted = await body_of(request)
    if "privacy" in wanted:
        if wanted["privacy"] not in PRIVACIES:
            raise answers.invalid("Team", "privacy", "invalid")
        team.privacy = wanted["privacy"]
    return JSONResponse(shapes.team(team))


async def list_members(api: Api, request: Request) -> Response:
    """`role` is member, maintainer or all; owners of the organization are always maintainers."""
    org, team = _found(api, request)
    role = request.query_params.get("role", "all")
    found = [
        login
        for login, given in sorted(team.members.items())
        if role == "all" or role == ("maintainer" if org.members.get(login) == "admin" else given)
    ]
    return paginated(request, [shapes.account(login) for login in found])


async def list_team_invitations(api: Api, request: Request) -> Response:
    _, team = _found(api, request)
    invited = [{"id": index, "login": login} for index, login in enumerate(sorted(team.pending))]
    return paginated(request, invited)


async def put_membership(api: Api, request: Request) -> Response:
    """Active for a member of the organization, pending (with an invitation) for anyone else."""
    org, team = _found(api, request)
    login = api.world.require_user(request.path_params["login"])
    role = (await body_of(request)).get("role", "member")
    if role not in ROLES:
        raise answers.invalid("TeamMember", "role", "invalid")
    if login in api.world.orgs:
        message = "Cannot add an organization as a member."
        raise answers.ApiError(422, message, errors=[{"code": "org", "resource": "TeamMember"}])
    active = login in org.members
    (team.members if active else team.pending)[login] = role
    return JSONResponse({"role": role, "state": "active" if active else "pending"})


async def get_membership(api: Api, request: Request) -> Response:
    _, team = _found(api, request)
    login = request.path_params["login"].lower()
    for state, logins in (("active", team.members), ("pending", team.pending)):
        if login in logins:
            return JSONResponse({"role": logins[login], "state": state})
    raise answers.not_found()


async def delete_membership(api: Api, request: Request) -> Response:
    _, team = _found(api, request)
    login = request.path_params["login"].lower()
    if team.members.pop(login, None) is None and team.pending.pop(login, None) is None:
        raise answers.not_found()
    return Response(status_code=204)
