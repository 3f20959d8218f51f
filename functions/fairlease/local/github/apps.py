"""Endpoints of a GitHub App: where it is installed, and tokens for an installation."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from fairlease.local.github import answers, shapes

if TYPE_CHECKING:
    from starlette.requests import Request

    from fairlease.local.github.gate import Api


async def get_installation(request: Request) -> Response:
    """404 for an organization that does not exist or has not installed the App."""
    api: Api = request.app.state.api
    try:
        api.credentials.authorize_app(request.headers.get("authorization", ""))
        org = api.world.org(request.path_params["org"])
        if not org.installed:
            raise answers.not_found()
    except answers.ApiError as error:
        return error.response()
    account = shapes.account(org.login, "Organization")
    app_id = api.credentials.app.app_id if api.credentials.app else ""
    found = {"id": org.id, "account": account, "app_id": app_id, "target_type": "Organization"}
    return JSONResponse(found)


async def create_installation_token(request: Request) -> Response:
    api: Api = request.app.state.api
    try:
        api.credentials.authorize_app(request.headers.get("authorization", ""))
        wanted = request.path_params["installation"]
        org = next((o for o in api.world.orgs.values() if o.id == wanted and o.installed), None)
        if org is None:
            raise answers.not_found()
    except answers.ApiError as error:
        return error.response()
    token, seconds = api.credentials.issue(org)
    expires = api.clock.now() + timedelta(seconds=seconds)
    body = {
        "token": token,
        "expires_at": f"{expires:%Y-%m-%dT%H:%M:%SZ}",
        "permissions": {"administration": "write", "members": "write", "metadata": "read"},
        "repository_selection": "all",
    }
    return JSONResponse(body, status_code=201)
