"""A request as the gateway sees it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from fairlease.local.gateway.errors import GatewayError

PLATFORM_PREFIX = "/rest/v1"

_WITH_CONTENT_PROFILE = ("POST", "PATCH", "PUT", "DELETE")


@dataclass(frozen=True)
class HttpRequest:
    """`path` as it was sent; names of `headers` in lower case, in the order of the request."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    def all(self, name: str) -> list[str]:
        return [value for known, value in self.headers if known == name]

    def header(self, name: str) -> str | None:
        """The first one of that name."""
        return self._first.get(name)

    @cached_property
    def _first(self) -> dict[str, str]:
        return dict(reversed(self.headers))

    @cached_property
    def api_path(self) -> str:
        """Without the platform's prefix, as PostgREST gets it."""
        if self.path == PLATFORM_PREFIX or self.path.startswith(f"{PLATFORM_PREFIX}/"):
            return self.path.removeprefix(PLATFORM_PREFIX) or "/"
        return self.path

    @property
    def segments(self) -> list[str]:
        path = self.api_path.removeprefix("/")
        return [unquote(part, errors="replace") for part in path.split("/")] if path else []

    @property
    def function_name(self) -> str | None:
        match self.segments:
            case ["rpc", name]:
                return name
        return None


def chosen_schema(request: HttpRequest, exposed: tuple[str, ...]) -> str:
    """Raises GatewayError PGRST106."""
    writes = request.method in _WITH_CONTENT_PROFILE
    profile = request.header("content-profile" if writes else "accept-profile")
    if profile is None:
        return exposed[0]
    if profile not in exposed:
        raise GatewayError(
            406,
            "PGRST106",
            f"Invalid schema: {profile}",
            hint=f"Only the following schemas are exposed: {', '.join(exposed)}",
        )
    return profile
