"""The routes, and the one place that builds the server from its configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.routing import Route

from fairlease.local.github import access, answers, apps, control, repos, teams
from fairlease.local.github.credentials import App, Credentials
from fairlease.local.github.faults import Faults
from fairlease.local.github.gate import Api, guarded
from fairlease.local.github.meter import Meter
from fairlease.local.github.throttle import Limits
from fairlease.local.github.world import Org, World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from fairlease.clock import Clock
    from fairlease.local.github.gate import Endpoint

LOCAL_TOKEN = "local-token"  # noqa: S105 - good on this server only


@dataclass(frozen=True, slots=True)
class Configuration:
    """`durations` in seconds, each create's is multiplied by `scale`; 0 answers at once."""

    orgs: tuple[str, ...] = ()
    tokens: tuple[str, ...] = (LOCAL_TOKEN,)
    app: App | None = None
    limits: Limits = field(default_factory=Limits)
    durations: Sequence[float] = ()
    scale: float = 0.0


def build(configuration: Configuration, clock: Clock) -> Starlette:
    api = Api(
        world=World(),
        meter=Meter(started=clock.monotonic()),
        credentials=Credentials(clock, configuration.tokens, configuration.app),
        faults=Faults(),
        clock=clock,
        throttles={},
        durations=configuration.durations,
        scale=configuration.scale,
    )
    for login in configuration.orgs:
        api.world.add_org(Org(login, configuration.limits))
    app = Starlette(
        routes=[*_api_routes(), *_app_routes(), *_control_routes()],
        exception_handlers={404: _unmatched, 405: _unmatched},
    )
    app.state.api = api
    return app


def _api_routes() -> list[Route]:
    repo = "/repos/{org}/{repo}"
    team = "/orgs/{org}/teams/{slug}"
    return [
        _route("GET", "/orgs/{org}", repos.get_org),
        _route("GET", "/orgs/{org}/repos", repos.list_repos),
        _route("POST", "/orgs/{org}/repos", repos.create_repo, creates=True),
        _route("GET", repo, repos.get_repo),
        _route("PATCH", repo, repos.update_repo),
        _route("POST", f"{repo}/generate", repos.generate_repo, creates=True),
        _route("GET", f"{repo}/branches/{{branch}}/protection", repos.get_protection),
        _route("PUT", f"{repo}/branches/{{branch}}/protection", repos.put_protection),
        _route("GET", f"{repo}/collaborators", access.list_collaborators),
        _route("PUT", f"{repo}/collaborators/{{login}}", access.put_collaborator),
        _route("DELETE", f"{repo}/collaborators/{{login}}", access.delete_collaborator),
        _route("GET", f"{repo}/invitations", access.list_invitations),
        _route("PATCH", f"{repo}/invitations/{{invitation:int}}", access.patch_invitation),
        _route("DELETE", f"{repo}/invitations/{{invitation:int}}", access.delete_invitation),
        _route("GET", f"{repo}/teams", access.list_repo_teams),
        _route("PUT", f"{team}/repos/{{owner}}/{{repo}}", access.put_team_repo),
        _route("DELETE", f"{team}/repos/{{owner}}/{{repo}}", access.delete_team_repo),
        _route("POST", "/orgs/{org}/teams", teams.create_team, creates=True),
        _route("GET", team, teams.get_team),
        _route("PATCH", team, teams.update_team),
        _route("GET", f"{team}/members", teams.list_members),
        _route("GET", f"{team}/invitations", teams.list_team_invitations),
        _route("GET", f"{team}/memberships/{{login}}", teams.get_membership),
        _route("PUT", f"{team}/memberships/{{login}}", teams.put_membership),
        _route("DELETE", f"{team}/memberships/{{login}}", teams.delete_membership),
    ]


def _route(method: str, path: str, endpoint: Endpoint, *, creates: bool = False) -> Route:
    return Route(path, guarded(endpoint, creates=creates), methods=[method])


def _app_routes() -> list[Route]:
    tokens = "/app/installations/{installation:int}/access_tokens"
    return [
        Route("/orgs/{org}/installation", apps.signed(apps.get_installation), methods=["GET"]),
        Route(tokens, apps.signed(apps.create_installation_token), methods=["POST"]),
    ]


def _control_routes() -> list[Route]:
    rows: list[tuple[str, str, Callable[[Request], Any]]] = [
        ("GET", "/_measure", control.measure),
        ("DELETE", "/_measure", control.reset_measure),
        ("PUT", "/_control/orgs", control.put_org),
        ("GET", "/_control/orgs/{org}", control.show_org),
        ("PUT", "/_control/missing-users", control.put_missing_users),
        ("DELETE", "/_control/tokens", control.revoke_tokens),
        ("POST", "/_control/faults", control.add_faults),
        ("DELETE", "/_control/faults", control.clear_faults),
    ]
    return [Route(path, endpoint, methods=[method]) for method, path, endpoint in rows]


async def _unmatched(_request: Request, _error: Exception) -> Response:
    return answers.not_found().response()
