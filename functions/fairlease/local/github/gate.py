"""What every API request passes: meter, credentials, limits, faults, endpoint, and back."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from fairlease.local.github.answers import ApiError
from fairlease.local.github.meter import Call
from fairlease.local.github.reset import reset_connection
from fairlease.local.github.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from fairlease.clock import Clock
    from fairlease.local.github.credentials import Credentials
    from fairlease.local.github.faults import Fault, Faults
    from fairlease.local.github.meter import Meter
    from fairlease.local.github.world import Org, World

    Endpoint = Callable[["Api", Request], Awaitable[Response]]

# As proxies log it: the connection went before the answer.
ANSWERED_NOBODY = 499

_anonymous = count(1)


class ClientGone(Exception):
    """The caller dropped the connection before its answer was ready."""


@dataclass(slots=True)
class Api:
    """Everything an endpoint may touch. Creating takes `durations[i] * scale` seconds."""

    world: World
    meter: Meter
    credentials: Credentials
    faults: Faults
    clock: Clock
    throttles: dict[str, Throttle]
    durations: Sequence[float] = ()
    scale: float = 0.0
    creates: int = 0

    def throttle_of(self, org: Org) -> Throttle:
        known = self.throttles.get(org.login.lower())
        if known is None or known.limits is not org.limits:
            # Without stretched durations a minute is a minute.
            known = Throttle(org.limits, self.scale or 1.0, self.clock.monotonic())
            self.throttles[org.login.lower()] = known
        return known

    async def stretch(self, name: str) -> None:
        """Take as long as the repository's duration says; its number in the name chooses it."""
        index = _number_at_end(name)
        if index is None:
            index = self.creates
        self.creates += 1
        if self.durations and self.scale > 0:
            await self.clock.sleep(self.durations[index % len(self.durations)] * self.scale)


def guarded(endpoint: Endpoint, *, creates: bool = False) -> Callable[[Request], Any]:
    """An endpoint of one org, behind the whole gate."""

    async def answer(request: Request) -> Response:
        api: Api = request.app.state.api
        call = _call_of(request)
        meter = api.meter.of(call.org)
        await request.body()
        concurrent = api.meter.opened(call, api.clock.monotonic())
        status: int | None = None

        def admit(throttle: Throttle) -> None:
            throttle.admit(api.clock.monotonic(), concurrent, creates=creates)

        try:
            response = await _unless_gone(request, _pass(api, request, call, endpoint, admit))
            status = response.status_code
        except ClientGone:
            response = Response(status_code=ANSWERED_NOBODY)
        finally:
            # Closed before the answer leaves, or the caller's next request could overlap it.
            meter.closed(call, api.clock.monotonic(), status)
        return response

    return answer


async def _pass(
    api: Api,
    request: Request,
    call: Call,
    endpoint: Endpoint,
    admit: Callable[[Throttle], None],
) -> Response:
    headers: dict[str, str] = {}
    try:
        api.credentials.authorize(request.headers.get("authorization", ""), call.org)
        org = api.world.org(call.org)
        throttle = api.throttle_of(org)
        try:
            admit(throttle)
        finally:
            headers = throttle.headers(api.clock.monotonic(), api.clock.now().timestamp())
        response = await _with_fault(api, request, call, endpoint)
    except ApiError as error:
        response = error.response()
    for name, value in headers.items():
        response.headers.setdefault(name, value)
    return response


async def _with_fault(api: Api, request: Request, call: Call, endpoint: Endpoint) -> Response:
    fault = api.faults.strike(call.org, call.method, call.path)
    if fault is None:
        return await endpoint(api, request)
    if fault.after:
        with suppress(ApiError):
            await endpoint(api, request)
    broken = await _after_its_time(api, request, fault)
    return broken or await endpoint(api, request)


async def struck(api: Api, org: str, request: Request) -> Response | None:
    """The broken answer that is due, if any, for an endpoint outside of the gate."""
    fault = api.faults.strike(org, request.method, request.url.path)
    return await _after_its_time(api, request, fault) if fault else None


async def _after_its_time(api: Api, request: Request, fault: Fault) -> Response | None:
    if fault.seconds:
        await api.clock.sleep(fault.seconds)
    if fault.kind == "slow":
        return None
    if fault.kind == "cut":
        return CutResponse()
    if fault.kind == "reset":
        if request.client is not None:
            # Granian gives the port as text.
            reset_connection((request.client.host, int(request.client.port)))
        return Response(status_code=ANSWERED_NOBODY)
    return Response(fault.body, fault.status, {"content-type": "text/html", **fault.headers})


class CutResponse(Response):
    """Promises a body and drops the connection instead of sending it."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"id":', "more_body": True})
        raise ConnectionResetError("cut on demand")


async def _unless_gone(request: Request, work: Any) -> Response:
    """The answer, or `ClientGone`; what the work has done by then stays done."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            response: Response = working.result()
            return response
        raise ClientGone
    finally:
        working.cancel()
        leaving.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _call_of(request: Request) -> Call:
    message = request.headers.get("x-fairlease-message")
    queue = request.headers.get("x-fairlease-queue")
    if message is None:
        message = f"request-{next(_anonymous)}"
    elif queue is not None:
        message = f"{queue}/{message}"
    return Call(
        org=request.path_params["org"],
        charged=request.headers.get("x-fairlease-org"),
        message=message,
        method=request.method,
        path=request.url.path,
    )


def _number_at_end(name: str) -> int | None:
    digits = name[len(name.rstrip("0123456789")) :]
    return int(digits[-9:]) if digits.isascii() and digits else None
