"""Endpoints of repositories: look, list, create, generate from a template, change, protect."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from fairlease.local.github import answers, shapes
from fairlease.local.github.pages import paginated
from fairlease.local.github.world import Repo

if TYPE_CHECKING:
    from starlette.requests import Request

    from fairlease.local.github.gate import Api


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object of a request; GitHub's 400 for anything else."""
    raw = await request.body()
    try:
        parsed = json.loads(raw or b"{}")
    except ValueError:
        raise answers.ApiError(400, "Problems parsing JSON") from None
    if not isinstance(parsed, dict):
        raise answers.ApiError(400, "Body should be a JSON object")
    return parsed


async def get_org(api: Api, request: Request) -> Response:
    return JSONResponse(shapes.organization(api.world.org(request.path_params["org"])))


async def list_repos(api: Api, request: Request) -> Response:
    repos = sorted(api.world.org(request.path_params["org"]).repos.values(), key=lambda r: r.name)
    return paginated(request, [shapes.repository(repo) for repo in repos])


async def get_repo(api: Api, request: Request) -> Response:
    org = api.world.org(request.path_params["org"])
    moved_to = org.moved.get(request.path_params["repo"].lower())
    if moved_to is not None:
        url = f"{request.url.scheme}://{request.url.netloc}/repositories/{moved_to}"
        moved = {"message": "Moved Permanently", "url": url, "documentation_url": answers.DOCS}
        return JSONResponse(moved, 301, {"location": url})
    return JSONResponse(shapes.repository(org.repo(request.path_params["repo"])))


async def create_repo(api: Api, request: Request) -> Response:
    org = api.world.org(request.path_params["org"])
    wanted = await body_of(request)
    repo = Repo(
        owner=org.login,
        name=_repo_name(wanted),
        private=bool(wanted.get("private", False)),
        description=wanted.get("description"),
        is_template=bool(wanted.get("is_template", False)),
    )
    return await _create(api, request, repo, answers.name_taken())


async def generate_repo(api: Api, request: Request) -> Response:
    template = api.world.repo(request.path_params["org"], request.path_params["repo"])
    wanted = await body_of(request)
    if not template.is_template:
        raise answers.not_found()
    repo = Repo(
        owner=api.world.org(str(wanted.get("owner") or template.owner)).login,
        name=_repo_name(wanted),
        private=bool(wanted.get("private", False)),
        description=wanted.get("description"),
        template=template.full_name,
    )
    return await _create(api, request, repo, answers.clone_name_taken())


async def _create(api: Api, request: Request, repo: Repo, taken: answers.ApiError) -> Response:
    meter = api.meter.of(repo.owner)
    message = request.headers.get("x-fairlease-message")
    if message is not None:
        queue = request.headers.get("x-fairlease-queue")
        meter.creates_by_message[f"{queue}/{message}" if queue else message] += 1
    repos = api.world.org(repo.owner).repos
    if repo.name.lower() in repos:
        meter.duplicate_creates += 1
        raise taken
    # The name is taken at once, as at GitHub: a second caller during a slow creation gets a 422.
    repos[repo.name.lower()] = repo
    meter.repos_created += 1
    await api.stretch(repo.name)
    return JSONResponse(shapes.repository(repo), status_code=201)


def _repo_name(wanted: dict[str, Any]) -> str:
    name = wanted.get("name")
    if not isinstance(name, str) or not name:
        raise answers.invalid("Repository", "name", "missing_field")
    return re.sub(r"[^A-Za-z0-9._-]", "-", name)[:100]


async def update_repo(api: Api, request: Request) -> Response:
    repo = api.world.repo(request.path_params["org"], request.path_params["repo"])
    wanted = await body_of(request)
    if repo.archived and wanted.get("archived") is not False:
        raise answers.archived()
    for field in ("archived", "private", "is_template"):
        if isinstance(wanted.get(field), bool):
            setattr(repo, field, wanted[field])
    if isinstance(wanted.get("description"), str):
        repo.description = wanted["description"]
    return JSONResponse(shapes.repository(repo))


async def get_protection(api: Api, request: Request) -> Response:
    repo = api.world.repo(request.path_params["org"], request.path_params["repo"])
    found = repo.protection.get(_existing_branch(repo, request))
    if found is None:
        raise answers.ApiError(404, "Branch not protected")
    return JSONResponse(_protection(found))


async def put_protection(api: Api, request: Request) -> Response:
    repo = api.world.repo(request.path_params["org"], request.path_params["repo"])
    if repo.archived:
        raise answers.archived()
    branch = _existing_branch(repo, request)
    wanted = await body_of(request)
    # GitHub demands these four, null or not.
    for field in (
        "required_status_checks",
        "enforce_admins",
        "required_pull_request_reviews",
        "restrictions",
    ):
        if field not in wanted:
            raise answers.ApiError(422, f'Invalid request.\n\n"{field}" wasn\'t supplied.')
    repo.protection[branch] = wanted
    return JSONResponse(_protection(wanted))


def _existing_branch(repo: Repo, request: Request) -> str:
    branch: str = request.path_params["branch"]
    if branch != repo.default_branch:
        raise answers.ApiError(404, "Branch not found")
    return branch


def _protection(wanted: dict[str, Any]) -> dict[str, Any]:
    return {
        "enforce_admins": {"enabled": bool(wanted.get("enforce_admins"))},
        "lock_branch": {"enabled": bool(wanted.get("lock_branch"))},
    }
