"""One organization's view of the REST API, charged to the message that calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from githubkit.exception import GitHubException, RequestError, RequestFailed

from fairlease import ConfigurationError, Context, Dead
from github_worker.answers import Answer, GitHubUnavailable, judge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping

    import httpx
    from githubkit import GitHub

API_VERSION = "2022-11-28"
PER_PAGE = 100

_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9_-])?")
_ORG_PATH = re.compile(r"/(?:orgs|repos)/([^/]+)(?:/teams/[^/]+/repos/([^/]+)/[^/]+$|/|$)")
_TOKEN_PATH = re.compile(r"/app/installations/[0-9]+/access_tokens")


class OtherOrg(Dead):
    """A call of an organization whose slot the message does not hold."""


class Refused(Exception):
    """Carries a 403 or 429 past githubkit, which fails on a `Retry-After` that is a date."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response.status_code)
        self.response = response


def require_own(org: str, called: str) -> None:
    """Raise `OtherOrg` unless both name the same organization; GitHub ignores case."""
    if called.lower() != org.lower():
        raise OtherOrg(
            f"charged to org {org!r} but would call {called[:100]!r}; send the message for that org"
        )


def require_login(org: str) -> None:
    """Raise `Dead` for an org that no organization of GitHub can be called."""
    if not _LOGIN.fullmatch(org):
        raise Dead(f"org {org[:100]!r} is no GitHub organization name; send the message for one")


def require_own_path(org: str, base_path: str, path: str) -> None:
    """Raise `OtherOrg` for a request outside of the organization; the last line of defence."""
    path = path.removeprefix(base_path.rstrip("/"))
    if _TOKEN_PATH.fullmatch(path):
        return
    found = None if any(map(_climbs, path.split("/"))) else _ORG_PATH.match(path)
    require_own(org, found.group(1) if found else path)
    if found and found.group(2):
        require_own(org, found.group(2))


def _climbs(segment: str) -> bool:
    """A segment that some server on the way may resolve into another path."""
    plain = unquote(segment)
    return plain in {".", ".."} or "/" in plain or "\\" in plain


def path_of(*parts: str) -> str:
    """A path of the API; whatever a part contains stays one part."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


@dataclass(frozen=True, slots=True)
class OrgApi:
    """The calls of one delivery. Every failure is raised as what becomes of the message."""

    github: GitHub[Any]
    org: str
    ctx: Context
    credentials: str

    async def get(self, *parts: str, **query: str) -> Any:
        """The JSON, or None where there is none such (404)."""
        answer = await self.call("GET", *parts, query=query, accept={404})
        return None if answer.status == 404 else answer.data  # noqa: PLR2004

    async def pages(self, *parts: str, **query: str) -> AsyncIterator[dict[str, Any]]:
        """Every item of a listing; raises `Dead` for a 404, as `call`."""
        page = 1
        while True:
            asked = {**query, "per_page": str(PER_PAGE), "page": str(page)}
            answer = await self.call("GET", *parts, query=asked)
            if not isinstance(answer.data, list):
                raise GitHubUnavailable(f"GET {path_of(*parts)}: not a listing")
            for item in answer.data:
                yield item
            if not answer.has_next_page:
                return
            page += 1

    async def call(
        self,
        method: str,
        *parts: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        accept: Collection[int] = (),
    ) -> Answer:
        """One request, never repeated here. `accept` are statuses that the caller understands."""
        path = path_of(*parts)
        response = await self._send(method, path, body, query)
        self.ctx.progress()
        return judge(
            f"{method} {path}",
            response,
            now=self.ctx.clock.now(),
            accept=frozenset(accept),
            credentials=self.credentials,
        )

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str] | None,
    ) -> httpx.Response:
        try:
            answer = await self.github.arequest(
                method, path, params=dict(query or {}), json=body, headers=self._headers()
            )
        except RequestFailed as failed:
            return failed.response.raw_response
        except RequestError as error:
            if isinstance(error.exc, Refused):
                return error.exc.response
            raise self._meaning_of(f"{method} {path}", error.exc) from error
        except GitHubException as error:
            raise ConfigurationError(
                f"{method} {path}: {error}; check {self.credentials}"
            ) from error
        return answer.raw_response

    def _headers(self) -> dict[str, str]:
        return {
            "X-GitHub-Api-Version": API_VERSION,
            "x-fairlease-org": self.ctx.org,
            "x-fairlease-queue": quote(self.ctx.queue),
            "x-fairlease-message": str(self.ctx.msg_id),
        }

    def _meaning_of(self, call: str, cause: BaseException) -> BaseException:
        if isinstance(cause, (Dead, ConfigurationError)):
            return cause
        if isinstance(cause, RequestFailed):
            status = cause.response.status_code
            if status < 500:  # noqa: PLR2004
                said = f"no installation token for {self.org!r} ({status})"
                return ConfigurationError(f"{call}: {said}; check {self.credentials}")
            return GitHubUnavailable(f"{call}: no installation token ({status})")
        # httpx's timeouts have no text of their own.
        return GitHubUnavailable(f"{call}: {str(cause)[:200] or type(cause).__name__}")
