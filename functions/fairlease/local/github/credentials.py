"""Who calls: a personal token, a GitHub App (JWT), or one of its installation tokens."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import jwt

from fairlease.local.github.answers import ApiError

if TYPE_CHECKING:
    from fairlease.clock import Clock
    from fairlease.local.github.world import Org

INSTALLATION_TOKEN_SECONDS = 3_600.0
LONGEST_APP_TOKEN_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class App:
    """A registered GitHub App; `public_key` in PEM verifies its RS256 tokens."""

    app_id: str
    public_key: str


@dataclass(slots=True)
class Credentials:
    """The tokens that are good, and until when (monotonic seconds)."""

    clock: Clock
    tokens: tuple[str, ...]
    app: App | None = None
    issued: dict[str, tuple[str, float]] = field(default_factory=dict)

    def authorize(self, header: str, org: str) -> None:
        """Raise 401 for bad credentials, 404 where a good installation token is of another org."""
        token = _token_of(header)
        if any(hmac.compare_digest(token.encode(), good.encode()) for good in self.tokens):
            return
        installed, expires = self.issued.get(token, ("", 0.0))
        if self.clock.monotonic() >= expires:
            raise _bad_credentials()
        if installed != org.lower():
            # GitHub does not say that something exists which the token may not see.
            raise ApiError(404, "Not Found")

    def authorize_app(self, header: str) -> None:
        """Raise 401 unless the header carries a fresh JWT of the registered App."""
        if self.app is None:
            raise _bad_credentials()
        try:
            claims = jwt.decode(
                _token_of(header),
                self.app.public_key,
                algorithms=["RS256"],
                options={"require": ["iss", "iat", "exp"]},
            )
        except jwt.PyJWTError:
            raise ApiError(401, "A JSON web token could not be decoded") from None
        if claims["exp"] - self.clock.now().timestamp() > LONGEST_APP_TOKEN_SECONDS:
            raise ApiError(401, "'Expiration time' claim ('exp') is too far in the future")
        if str(claims["iss"]) != self.app.app_id:
            raise ApiError(401, "Integration not found")

    def issue(self, org: Org) -> tuple[str, float]:
        """A new installation token and the seconds that it is good for."""
        token = f"ghs_{secrets.token_hex(18)}"
        expires = self.clock.monotonic() + INSTALLATION_TOKEN_SECONDS
        self.issued[token] = (org.login.lower(), expires)
        return token, INSTALLATION_TOKEN_SECONDS


def _token_of(header: str) -> str:
    scheme, _, token = header.partition(" ")
    if scheme.lower() not in {"bearer", "token"} or not token.strip():
        raise ApiError(401, "Requires authentication")
    return token.strip()


def _bad_credentials() -> ApiError:
    return ApiError(401, "Bad credentials")
