"""What an answer of the API means for the message: done, later, or dead with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlease import ConfigurationError, Dead, Retry
from github_worker.limits import limit_of, wait_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    import httpx

# What a reason shows of GitHub's own words, in characters.
SAID_LIMIT = 300
# Something that another message makes may be missing for this many attempts.
ATTEMPTS_UNTIL_MISSING_IS_FINAL = 5

NO_CONTENT = 204
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TRY_AGAIN = frozenset({408, 425})


class GitHubUnavailable(Exception):
    """No answer, or one that says nothing about the request: the same call may succeed later."""


class NotThereYet(Exception):
    """Something that another message makes is missing: it may exist at the next attempt."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that the caller can work with. `data` is its JSON, None without one."""

    status: int
    data: Any
    has_next_page: bool = False

    @property
    def said(self) -> str:
        return explanation(self.data)


def read(response: httpx.Response) -> Any:
    """The JSON of a body, None for anything else."""
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None


def explanation(data: Any) -> str:
    """GitHub's message with its details, cut; empty for a body that is not GitHub's."""
    if not isinstance(data, dict):
        return ""
    details = data.get("errors")
    texts = [data.get("message"), *map(_detail, details if isinstance(details, list) else ())]
    return "; ".join(text for text in texts if isinstance(text, str) and text)[:SAID_LIMIT]


def _detail(error: Any) -> str:
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return ""
    named = " ".join(str(error[k]) for k in ("resource", "field", "code") if error.get(k))
    message = error.get("message")
    return message if isinstance(message, str) and message else named


def judge(
    call: str,
    response: httpx.Response,
    *,
    now: datetime,
    accept: frozenset[int],
    credentials: str,
) -> Answer:
    """The answer, if its status is a success or in `accept`; else raise what the message becomes.

    `call` names the request in errors; `credentials` names the variables behind a 401. A rate
    limit is never an accepted answer.
    """
    status, data = response.status_code, read(response)
    limit = limit_of(status, _lower(response.headers), _all_text(data), now)
    if limit is not None:
        raise limit
    if response.is_success and data is None and status != NO_CONTENT:
        # A proxy's page with status 200 must not read as an empty listing.
        raise GitHubUnavailable(f"{call}: {status} without JSON")
    if response.is_success or status in accept:
        return Answer(status, data, "next" in response.links)
    said = explanation(data)
    if status == 401:  # noqa: PLR2004
        raise ConfigurationError(
            f"{call}: GitHub refused the credentials (401); renew {credentials}"
        )
    if status in _REDIRECTS:
        raise Dead(f"{call}: renamed or moved ({status}); send the message with the new name")
    if status >= 500 or status in _TRY_AGAIN or status < 400:  # noqa: PLR2004
        _try_later(f"{call}: {status}", response, now)
    raise Dead(f"{call}: {status}: {said or 'GitHub gave no reason'}")


def _try_later(what: str, response: httpx.Response, now: datetime) -> None:
    unavailable = GitHubUnavailable(what)
    wait = wait_seconds(response.headers.get("retry-after", ""), now)
    if wait is None:
        raise unavailable
    raise Retry(after=wait) from unavailable


def missing(what: str, attempt: int) -> Exception:
    """What to raise for a 404 about something that another message may be about to make."""
    if attempt < ATTEMPTS_UNTIL_MISSING_IS_FINAL:
        return NotThereYet(f"{what} does not exist yet")
    return Dead(f"{what} does not exist (after {attempt} attempts); create it, then replay")


def _all_text(data: Any) -> str:
    if not isinstance(data, dict):
        return ""
    return f"{data.get('message', '')} {data.get('documentation_url', '')}"


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
