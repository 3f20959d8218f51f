"""The way behind the counter: measure, reset, set up organizations, order failures.

None of this is GitHub's; it needs no credentials because the server listens on loopback only.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.responses import JSONResponse, Response

from fairlease.local.github.faults import Fault
from fairlease.local.github.meter import Meter
from fairlease.local.github.throttle import Limits
from fairlease.local.github.world import Org, Repo, Team, slug_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from fairlease.local.github.gate import Api


class TeamSetup(BaseModel):
    """A team with its members (login to role)."""

    model_config = ConfigDict(extra="forbid")
    privacy: str = "secret"
    members: dict[str, str] = Field(default_factory=dict)
    repos: dict[str, str] = Field(default_factory=dict)


class RepoSetup(BaseModel):
    """A repository as it stands before the test."""

    model_config = ConfigDict(extra="forbid")
    private: bool = True
    archived: bool = False
    is_template: bool = False
    template: str | None = None
    collaborators: dict[str, str] = Field(default_factory=dict)


class OrgSetup(BaseModel):
    """An organization; an existing one of this name is replaced."""

    model_config = ConfigDict(extra="forbid")
    login: str
    limits: Limits = Field(default_factory=Limits)
    installed: bool = True
    members: dict[str, str] = Field(default_factory=dict)
    repos: dict[str, RepoSetup] = Field(default_factory=dict)
    moved: dict[str, int] = Field(default_factory=dict)
    teams: dict[str, TeamSetup] = Field(default_factory=dict)

    def org(self) -> Org:
        org = Org(self.login, self.limits, self.installed, _lower(self.members))
        org.moved = {name.lower(): target for name, target in self.moved.items()}
        for name, setup in self.repos.items():
            repo = Repo(self.login, name, **setup.model_dump())
            repo.collaborators = _lower(repo.collaborators)
            org.repos[name.lower()] = repo
        for name, team in self.teams.items():
            slug = slug_of(name)
            org.teams[slug] = Team(
                name, slug, team.privacy, None, _lower(team.members), repos=_lower(team.repos)
            )
        return org


_faults = TypeAdapter(list[Fault])


async def measure(request: Request) -> Response:
    api: Api = request.app.state.api
    return JSONResponse(api.meter.report(api.clock.monotonic()))


async def reset_measure(request: Request) -> Response:
    """The last measure, and a new one begins; requests that are open now are not in it."""
    api: Api = request.app.state.api
    now = api.clock.monotonic()
    report = api.meter.report(now)
    api.meter = Meter(started=now)
    return JSONResponse(report)


async def put_org(request: Request) -> Response:
    api: Api = request.app.state.api
    try:
        setup = OrgSetup.model_validate_json(await request.body())
    except ValidationError as error:
        return _refused(error)
    org = api.world.add_org(setup.org())
    return JSONResponse(asdict(org))


async def show_org(request: Request) -> Response:
    api: Api = request.app.state.api
    org = api.world.orgs.get(request.path_params["org"].lower())
    return JSONResponse(asdict(org)) if org else Response(status_code=404)


async def put_missing_users(request: Request) -> Response:
    api: Api = request.app.state.api
    api.world.missing_users |= {str(login).lower() for login in await request.json()}
    return Response(status_code=204)


async def revoke_tokens(request: Request) -> Response:
    """Every installation token is bad from now on; a new one can be had."""
    api: Api = request.app.state.api
    api.credentials.issued.clear()
    return Response(status_code=204)


async def add_faults(request: Request) -> Response:
    api: Api = request.app.state.api
    try:
        api.faults.rules += _faults.validate_json(await request.body())
    except ValidationError as error:
        return _refused(error)
    return Response(status_code=204)


async def clear_faults(request: Request) -> Response:
    api: Api = request.app.state.api
    api.faults.rules.clear()
    return Response(status_code=204)


def _lower(names: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in names.items()}


def _refused(error: ValidationError) -> Response:
    details: list[Any] = error.errors(include_url=False, include_context=False)
    return JSONResponse({"message": "not understood", "errors": details}, status_code=400)
