"""Endpoints of who may do what in a repository: collaborators, invitations, teams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from fairlease.local.github import answers, shapes
from fairlease.local.github.pages import paginated
from fairlease.local.github.repos import body_of
from fairlease.local.github.world import PERMISSION_OF_ROLE, PERMISSIONS, Invitation, Repo

if TYPE_CHECKING:
    from starlette.requests import Request

    from fairlease.local.github.gate import Api


def _repo(api: Api, request: Request, *, writes: bool = False) -> Repo:
    repo = api.world.repo(request.path_params["org"], request.path_params["repo"])
    if writes and repo.archived:
        raise answers.archived()
    return repo


def _permission(wanted: dict[str, Any], field: str = "permission") -> str:
    given = wanted.get(field, "push")
    permission = PERMISSION_OF_ROLE.get(given, given)
    if permission not in PERMISSIONS:
        raise answers.invalid("Repository", field, "invalid")
    return str(permission)


async def list_collaborators(api: Api, request: Request) -> Response:
    """Direct collaborators; `affiliation=all` adds the owners of the organization as admins."""
    repo = _repo(api, request)
    found = dict(repo.collaborators)
    if request.query_params.get("affiliation", "all") == "all":
        owners = api.world.org(repo.owner).members.items()
        found |= {login: "admin" for login, role in owners if role == "admin"}
    return paginated(request, [shapes.collaborator(*item) for item in sorted(found.items())])


async def put_collaborator(api: Api, request: Request) -> Response:
    """204 for a member or known collaborator, 201 with an invitation for anyone else."""
    repo = _repo(api, request, writes=True)
    login = api.world.require_user(request.path_params["login"])
    permission = _permission(await body_of(request))
    if login in repo.collaborators or login in api.world.org(repo.owner).members:
        repo.collaborators[login] = permission
        return Response(status_code=204)
    for sent in repo.invitations.values():
        if sent.login == login:
            sent.permission = permission
            return JSONResponse(shapes.invitation(repo, sent), status_code=201)
    sent = Invitation(login, permission)
    repo.invitations[sent.id] = sent
    return JSONResponse(shapes.invitation(repo, sent), status_code=201)


async def delete_collaborator(api: Api, request: Request) -> Response:
    repo = _repo(api, request, writes=True)
    repo.collaborators.pop(request.path_params["login"].lower(), None)
    return Response(status_code=204)


async def list_invitations(api: Api, request: Request) -> Response:
    repo = _repo(api, request)
    return paginated(request, [shapes.invitation(repo, i) for i in repo.invitations.values()])


async def patch_invitation(api: Api, request: Request) -> Response:
    repo = _repo(api, request, writes=True)
    sent = repo.invitations.get(request.path_params["invitation"])
    if sent is None:
        raise answers.not_found()
    sent.permission = _permission(await body_of(request), "permissions")
    return JSONResponse(shapes.invitation(repo, sent))


async def delete_invitation(api: Api, request: Request) -> Response:
    repo = _repo(api, request, writes=True)
    if repo.invitations.pop(request.path_params["invitation"], None) is None:
        raise answers.not_found()
    return Response(status_code=204)


async def list_repo_teams(api: Api, request: Request) -> Response:
    repo = _repo(api, request)
    teams = api.world.org(repo.owner).teams.values()
    key = repo.name.lower()
    return paginated(request, [shapes.team(t, t.repos[key]) for t in teams if key in t.repos])


async def put_team_repo(api: Api, request: Request) -> Response:
    """The team, and the repository with the owner in the same path, as GitHub has it."""
    team = api.world.org(request.path_params["org"]).team(request.path_params["slug"])
    repo = api.world.repo(request.path_params["owner"], request.path_params["repo"])
    if repo.owner.lower() != request.path_params["org"].lower():
        raise answers.ApiError(422, "Validation Failed", errors=["Not owned by the organization"])
    if repo.archived:
        raise answers.archived()
    team.repos[repo.name.lower()] = _permission(await body_of(request))
    return Response(status_code=204)


async def delete_team_repo(api: Api, request: Request) -> Response:
    team = api.world.org(request.path_params["org"]).team(request.path_params["slug"])
    repo = api.world.repo(request.path_params["owner"], request.path_params["repo"])
    if repo.archived:
        raise answers.archived()
    team.repos.pop(repo.name.lower(), None)
    return Response(status_code=204)
