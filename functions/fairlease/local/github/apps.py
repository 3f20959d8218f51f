"""Endpoints of a GitHub App: where it is installed, and tokens for an installation."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from fairlease.local.github import answers, shapes
from fairlease.local.github.gate import Api, struck

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from fairlease.local.github.world import Org


def signed(
    endpoint: Callable[[Api, Org], Response],
) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint for the App itself: a JWT instead of a token, faults, and no org's limits.

    404 for an organization that does not exist or has not installed the App.
    """

    async def answer(request: Request) -> Response:
        api: Api = request.app.state.api
        try:
            api.credentials.authorize_app(request.headers.get("authorization", ""))
            org = _installed(api, request.path_params)
        except answers.ApiError as error:
            return error.response()
        broken = await struck(api, org.login, request)
        return broken or endpoint(api, org)

    return answer


def _installed(api: Api, path: dict[str, Any]) -> Org:
    for org in api.world.orgs.values():
        asked = (
            org.id == path.get("installation") or org.login.lower() == path.get("org", "").lower()
        )
        if asked and org.installed:
            return org
    raise answers.not_found()


def get_installation(api: Api, org: Org) -> Response:
    account = shapes.account(org.login, "Organization")
    app_id = api.credentials.app.app_id if api.credentials.app else ""
    found = {"id": org.id, "account": account, "app_id": app_id, "target_type": "Organization"}
    return JSONResponse(found)


def create_installation_token(api: Api, org: Org) -> Response:
    token, seconds = api.credentials.issue(org)
    api.meter.of(org.login).tokens_issued += 1
    expires = api.clock.now() + timedelta(seconds=seconds)
    body = {
        "token": token,
        "expires_at": f"{expires:%Y-%m-%dT%H:%M:%SZ}",
        "permissions": {"administration": "write", "members": "write", "metadata": "read"},
        "repository_selection": "all",
    }
    return JSONResponse(body, status_code=201)
