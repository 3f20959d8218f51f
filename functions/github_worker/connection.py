"""The connections of this process: one pool, one client per organization, closed at the end."""

from __future__ import annotations

import asyncio
import functools
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
from githubkit import AppAuthStrategy, AppInstallationAuthStrategy, GitHub, TokenAuthStrategy
from githubkit.cache import MemCacheStrategy

from fairlease import Dead
from github_worker.client import OrgApi, Refused, require_login, require_own_path
from github_worker.limits import LIMIT_STATUSES
from github_worker.settings import AppKey, GitHubSettings, load_settings

if TYPE_CHECKING:
    import ssl

    from fairlease import Context

USER_AGENT = "fairlease-github-worker"
CONNECT_SECONDS = 10.0
# Clients that are kept; a client is small, and the pool behind them is one.
ORGS_KEPT = 256


@functools.cache
def _trust() -> ssl.SSLContext:
    """Reading the certificates takes 50 ms: once per process."""
    return httpx.create_ssl_context()


class SharedTransport(httpx.AsyncBaseTransport):
    """One pool under all of githubkit's clients, which live for a single request each."""

    def __init__(self) -> None:
        self._client = httpx.AsyncClient(verify=_trust(), follow_redirects=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._client.send(request, stream=True)

    async def aclose(self) -> None:
        """Closing a client of one request leaves the pool open."""

    async def close(self) -> None:
        await self._client.aclose()


@dataclass(slots=True)
class Connections:
    """Belongs to the event loop that it was made in."""

    settings: GitHubSettings
    transport: SharedTransport = field(default_factory=SharedTransport)
    by_org: OrderedDict[str, GitHub[Any]] = field(default_factory=OrderedDict)
    locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def api(self, ctx: Context) -> OrgApi:
        """The API of `ctx.org`. Raises `Dead` where that cannot be an organization of GitHub."""
        require_login(ctx.org)
        key = ctx.org.lower()
        async with self.locks.setdefault(key, asyncio.Lock()):
            github = self.by_org.get(key)
            if github is None:
                github = await self._connect(ctx)
                self.by_org[key] = github
        self.by_org.move_to_end(key)
        while len(self.by_org) > ORGS_KEPT:
            forgotten, _ = self.by_org.popitem(last=False)
            self.locks.pop(forgotten, None)
        return self._api(github, ctx)

    def forget(self, org: str) -> None:
        """The next delivery authenticates again: a token may have been revoked."""
        self.by_org.pop(org.lower(), None)

    async def _connect(self, ctx: Context) -> GitHub[Any]:
        credentials = self.settings.credentials
        if not isinstance(credentials, AppKey):
            return self._client(ctx.org, TokenAuthStrategy(credentials.get_secret_value()))
        app_id, private_key = credentials.app_id, credentials.private_key.get_secret_value()
        as_app = self._client(ctx.org, AppAuthStrategy(app_id, private_key))
        found = await self._api(as_app, ctx).get("orgs", ctx.org, "installation")
        if not isinstance(found, dict) or not isinstance(found.get("id"), int):
            raise Dead(f"organization {ctx.org!r} does not exist or has not installed the App")
        return self._client(ctx.org, AppInstallationAuthStrategy(app_id, private_key, found["id"]))

    def _client(self, org: str, auth: Any) -> GitHub[Any]:
        base_url = httpx.URL(self.settings.api_url)

        async def only_own(request: httpx.Request) -> None:
            path = request.url.raw_path.partition(b"?")[0]
            require_own_path(org, base_url.path, path.decode("ascii"))

        async def carry_refusal(response: httpx.Response) -> None:
            if response.status_code in LIMIT_STATUSES:
                await response.aread()
                raise Refused(response)

        return GitHub(
            auth,
            base_url=base_url,
            user_agent=USER_AGENT,
            # A moved repository may have moved to another organization.
            follow_redirects=False,
            timeout=httpx.Timeout(self.settings.timeout_seconds, connect=CONNECT_SECONDS),
            async_transport=self.transport,
            async_event_hooks={"request": [only_own], "response": [carry_refusal]},
            cache_strategy=MemCacheStrategy(),
            http_cache=False,
            # Its retries repeat a POST; how often and when is the queue's to decide.
            auto_retry=False,
        )

    def _api(self, github: GitHub[Any], ctx: Context) -> OrgApi:
        return OrgApi(github, ctx.org, ctx, self.settings.variables)


_connections: dict[asyncio.AbstractEventLoop, Connections] = {}


def connections_of_this_loop() -> Connections:
    """Made at the first call. Raises `ConfigurationError`, as `settings.load_settings`."""
    loop = asyncio.get_running_loop()
    if loop not in _connections:
        for ended in [known for known in _connections if known.is_closed()]:
            del _connections[ended]
        _connections[loop] = Connections(load_settings())
    return _connections[loop]


async def connect(ctx: Context) -> OrgApi:
    """The API of `ctx.org`, over connections that this process keeps.

    Raises `ConfigurationError` where the environment lacks what is needed, or GitHub refuses it.
    """
    return await connections_of_this_loop().api(ctx)


def forget(org: str) -> None:
    """Drop the client of an organization, with its cached installation token."""
    for connections in _connections.values():
        connections.forget(org)


async def close() -> None:
    """Close the connections of the running loop; the next call opens new ones."""
    connections = _connections.pop(asyncio.get_running_loop(), None)
    if connections is not None:
        await connections.transport.close()
