"""The routes for whoever runs the gateway: the fault switch, and a reload that is waited for."""

from __future__ import annotations

import hmac
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import psycopg
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fairlease.errors import ConfigurationError
from fairlease.local.gateway.faults import Fault
from fairlease.local.gateway.tokens import bearer_token

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from fairlease.local.gateway.config import GatewayConfig

    Endpoint = Callable[[Request], Awaitable[Response]]


def admin_routes(config: GatewayConfig) -> list[Route]:
    """All want `Authorization: Bearer <admin_token>`."""
    faults = config.faults

    async def list_faults(_: Request) -> Response:
        return JSONResponse([asdict(fault) for fault in faults.active()])

    async def add_faults(request: Request) -> Response:
        """The body is one fault or a list of them, with the fields of `Fault`."""
        try:
            given: Any = await request.json()
            faults.add(*(Fault(**each) for each in (given if isinstance(given, list) else [given])))
        except (ValueError, TypeError, ConfigurationError) as error:
            return JSONResponse({"message": str(error)}, 400)
        return Response(status_code=204)

    async def clear_faults(_: Request) -> Response:
        faults.clear()
        return Response(status_code=204)

    async def reload(request: Request) -> Response:
        try:
            await request.app.state.watch.reload()
        except psycopg.Error as error:
            return JSONResponse({"message": str(error)}, 503)
        return Response(status_code=204)

    async def status(request: Request) -> Response:
        """`notifications`: how many of Postgres' channel have been dealt with."""
        watch = request.app.state.watch
        loaded = watch.schema is not None
        return JSONResponse({"schema_loaded": loaded, "notifications": watch.notifications})

    path = "/_gateway/faults"
    return [
        Route("/_gateway/status", _guarded(config, status), methods=["GET"]),
        Route(path, _guarded(config, list_faults), methods=["GET"]),
        Route(path, _guarded(config, add_faults), methods=["POST"]),
        Route(path, _guarded(config, clear_faults), methods=["DELETE"]),
        Route("/_gateway/reload", _guarded(config, reload), methods=["POST"]),
    ]


def _guarded(config: GatewayConfig, endpoint: Endpoint) -> Endpoint:
    async def guarded(request: Request) -> Response:
        token = bearer_token(request.headers.get("authorization")) or ""
        if not hmac.compare_digest(token.encode(), config.admin_token.encode()):
            return JSONResponse({"message": "the admin token is missing or wrong"}, 401)
        return await endpoint(request)

    return guarded
