"""What leaves for Sentry: no secret ever, no payload unless an operator asked for payloads."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PAYLOADS_VARIABLE = "FAIRLEASE_SENTRY_PAYLOADS"
SCRUBBED = "[scrubbed]"
HIDDEN = f"(not sent: it may quote the payload; {PAYLOADS_VARIABLE}=1 sends it)"

# Their names say that a variable of the environment is a secret, or carries one.
_SECRET_NAME = re.compile(r"SECRET|TOKEN|PASSWORD|PASSWD|_KEY$|CREDENTIAL|DATABASE_URL|_DSN$|_PEM$")
# Shorter ones would be cut out of the middle of ordinary words.
_SHORTEST_SECRET = 8
_TOKENS = re.compile(
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"
    r"|sb_(?:secret|publishable)_[A-Za-z0-9_-]+"
    r"|gh[a-z]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}"
    r"|xox[a-z]-[A-Za-z0-9-]{8,}|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}"
    r"|AKIA[A-Z0-9]{12,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_AUTHORIZATION = re.compile(r"\b(bearer|basic|token)(\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_USERINFO = re.compile(r"(\w+://)[^/\s@]*:[^\s@]*@")
_PASSWORD = re.compile(
    r"\b((?:password|passwd|pwd|secret|token|api_?key)\s*[=:]\s*)[^\s,;&]+", re.IGNORECASE
)
_SECRET_KEY = re.compile(
    r"password|passwd|secret|token|authorization|cookie|api_?key|dsn", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Scrubber:
    """`secrets` are cut out of every text; what a payload may be in stays with `payloads` alone."""

    secrets: tuple[str, ...] = field(repr=False)
    payloads: bool

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Scrubber:
        return cls(tuple(_secrets_of(environ)), environ.get(PAYLOADS_VARIABLE) == "1")

    def before_send(self, event: Any, _hint: Any) -> Any:
        """Of the SDK, for each event."""
        if not self.payloads:
            _hide_payloads(event)
        return self._cleaned(event)

    def text(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, SCRUBBED)
        text = _TOKENS.sub(SCRUBBED, text)
        text = _AUTHORIZATION.sub(rf"\1\2{SCRUBBED}", text)
        text = _USERINFO.sub(rf"\1{SCRUBBED}@", text)
        return _PASSWORD.sub(rf"\1{SCRUBBED}", text)

    def _cleaned(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case dict():
                return {key: self._entry(key, item) for key, item in value.items()}
            case list() | tuple():
                return [self._cleaned(item) for item in value]
            case _:
                return value

    def _entry(self, key: Any, value: Any) -> Any:
        if isinstance(value, str) and isinstance(key, str) and _SECRET_KEY.search(key):
            return SCRUBBED
        return self._cleaned(value)


def _secrets_of(environ: Mapping[str, str]) -> Iterable[str]:
    """Longest first, so that none is cut in two by another."""
    found: set[str] = set()
    for name, value in environ.items():
        if _SECRET_NAME.search(name.upper()):
            found.update(part.strip() for part in (value, *value.split(",")))
            password = _password_in(value)
            # As it is written, and as the database knows it.
            found.update((password, unquote(password)))
    return sorted((s for s in found if len(s) >= _SHORTEST_SECRET), key=len, reverse=True)


def _password_in(value: str) -> str:
    try:
        return urlsplit(value).password or ""
    except ValueError:
        return ""


def _hide_payloads(event: Any) -> None:
    """The texts of exceptions and the variables of frames; our own errors carry no payload."""
    for exception in (event.get("exception") or {}).get("values") or ():
        if not _is_ours(exception) and exception.get("value"):
            exception["value"] = HIDDEN
        _hide_variables(exception.get("stacktrace"))
    for thread in (event.get("threads") or {}).get("values") or ():
        _hide_variables(thread.get("stacktrace"))
    event.pop("request", None)


def _is_ours(exception: Mapping[str, Any]) -> bool:
    ours = exception.get("module") == "fairlease.errors"
    return ours and exception.get("type") != "InvalidInput"


def _hide_variables(stacktrace: Any) -> None:
    for frame in (stacktrace or {}).get("frames") or ():
        frame.pop("vars", None)
