"""The routes of the host: pokes behind the secret, and what a cluster asks about its health."""

from __future__ import annotations

import asyncio
import hmac
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fairlease.host.passing_on import HEADER as PASSED_ON
from fairlease.host.readiness import Readiness

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pydantic import SecretStr
    from starlette.requests import Request
    from starlette.types import Lifespan

    from fairlease.host.functions import FunctionFolder
    from fairlease.host.passing_on import Successor
    from fairlease.host.runs import Runs
    from fairlease.settings import KnobIssue

log = logging.getLogger("fairlease.host")

SECRET_HEADER = "x-edge-function-secret"  # noqa: S105 - its name
BODY_LIMIT = 64 * 1024
BODY_SECONDS = 10
_ALL_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


@dataclass(frozen=True, slots=True)
class Surface:
    """What the routes answer from."""

    functions: Mapping[str, FunctionFolder]
    secrets: Sequence[SecretStr]
    runs: Runs
    issues: Mapping[str, Sequence[KnobIssue]]
    readiness: Callable[[], Awaitable[Readiness]]
    # From the Accept header to a body and its content type.
    metrics: Callable[[str], Awaitable[tuple[bytes, str]]]
    # Who takes the pokes that are through only when this isolate is to stop; None: nobody.
    successor: Successor | None = None


def build_app(surface: Surface, lifespan: Lifespan[Starlette] | None = None) -> Starlette:
    """The ASGI application. Whoever has no secret learns nothing about the functions."""

    async def poke(request: Request) -> Response:
        return await _poke(surface, request)

    async def healthz(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def readyz(_request: Request) -> JSONResponse:
        return await _readiness(surface)

    async def metrics(request: Request) -> Response:
        try:
            body, content_type = await surface.metrics(request.headers.get("accept", ""))
        except Exception:
            log.exception("the metrics could not be rendered")
            return _refused(500, "the metrics could not be rendered; the host's log says why")
        return Response(body, headers={"content-type": content_type})

    app = Starlette(
        routes=[
            Route("/functions/v1/{name:path}", poke, methods=_ALL_METHODS),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
        ],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


async def _poke(surface: Surface, request: Request) -> Response:
    if not _opens(surface.secrets, request):
        return _refused(401, f"wrong or missing {SECRET_HEADER}")
    name = request.path_params["name"]
    folder = surface.functions.get(name)
    if folder is None:
        return _refused(404, f"no function {name[:60]!r} here")
    if request.method != "POST":
        return _refused(405, "poke a function with POST", {"allow": "POST"})
    if refusal := await _unfit_body(request):
        return refusal
    if surface.runs.stopping:
        return await _passed_on(surface.successor, request)
    return _started(surface.runs, folder)


async def _passed_on(successor: Successor | None, request: Request) -> Response:
    if successor is not None and PASSED_ON not in request.headers:
        secret = request.headers[SECRET_HEADER].encode("latin-1")
        answer = await successor.poke(request.url.path, {SECRET_HEADER.encode(): secret})
        if answer is not None:
            return Response(answer.content, answer.status_code, media_type="application/json")
    return _refused(503, "this host is stopping; poke again", {"retry-after": "1"})


def _started(runs: Runs, folder: FunctionFolder) -> JSONResponse:
    try:
        poked = runs.poke(folder)
    except Exception:
        log.exception("no run could be made", extra={"function": folder.name})
        return _refused(500, f"{folder.name} could not be started; the host's log says why")
    status = "accepted" if poked.started else "already_running"
    return JSONResponse({"status": status, "run_id": poked.run_id}, status_code=202)


def _opens(secrets: Sequence[SecretStr], request: Request) -> bool:
    """Exactly one header, equal to one of the secrets; every one is compared, in constant time."""
    given = [v for k, v in request.scope["headers"] if k == SECRET_HEADER.encode()]
    if len(given) != 1:
        return False
    found = False
    for secret in secrets:
        found |= hmac.compare_digest(given[0], secret.get_secret_value().encode())
    return found


async def _unfit_body(request: Request) -> JSONResponse | None:
    """Nobody reads it, but a client sends it: bounded in size and time."""
    closing = {"connection": "close"}
    try:
        async with asyncio.timeout(BODY_SECONDS):
            if await _is_too_large(request):
                return _refused(413, f"a poke carries at most {BODY_LIMIT} bytes", closing)
    except ClientDisconnect:
        return _refused(400, "the caller left before its poke was through", closing)
    except TimeoutError:
        return _refused(408, f"the body of a poke comes within {BODY_SECONDS} s", closing)
    return None


async def _is_too_large(request: Request) -> bool:
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced[:20]) > BODY_LIMIT:
        return True
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > BODY_LIMIT:
            return True
    return False


async def _readiness(surface: Surface) -> JSONResponse:
    if surface.runs.stopping:
        state = Readiness(problems=("this host is stopping",))
    else:
        state = await surface.readiness()
    issues = {name: [_told(i) for i in found] for name, found in surface.issues.items() if found}
    body = {
        "ready": not state.problems,
        "problems": state.problems,
        "notes": state.notes,
        "knob_issues": issues,
    }
    return JSONResponse(body, status_code=503 if state.problems else 200)


def _told(issue: KnobIssue) -> dict[str, Any]:
    """Without what the variable held: anybody may ask, and it may be a secret on a wrong line."""
    return {"env": issue.env, "kind": issue.kind.value, "effective": issue.effective}


def _refused(status: int, why: str, headers: dict[str, Any] | None = None) -> JSONResponse:
    return JSONResponse({"error": why}, status_code=status, headers=headers)
