"""Who is asking: the Bearer token, checked as PostgREST checks it."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jwt

from fairlease.local.gateway.errors import GatewayError

if TYPE_CHECKING:
    from collections.abc import Callable

ALGORITHM = "HS256"

_ALLOWED_SKEW_SECONDS = 30
_PARTS = 3
_REMEMBERED_TOKENS = 1000
_UNPADDED_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")
_KNOWN_ALGORITHMS = frozenset(
    f"{family}{bits}" for family in ("HS", "RS", "ES") for bits in (256, 384, 512)
) | {"EdDSA"}
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Caller:
    """The role a request runs as, and what `request.jwt.claims` shows."""

    role: str
    claims: str


class Tokens:
    """Verifies tokens; remembers verified ones, whose times are checked on every use."""

    def __init__(
        self,
        *,
        secret: str | None,
        audience: str | None,
        anonymous_role: str | None,
        now: Callable[[], float],
    ) -> None:
        self._secret = secret
        self._audience = audience
        self._anonymous_role = anonymous_role
        self._now = now
        self._verified: dict[str | None, tuple[dict[str, Any], Caller]] = {}

    def caller(self, authorization: str | None) -> Caller:
        """Raises GatewayError: 401, or 500 where no secret is configured."""
        token = bearer_token(authorization)
        if token == "":
            raise _undecodable("Empty JWT is sent in Authorization header")
        claims, caller = self._verified.get(token, (None, None))
        if claims is None:
            claims = {} if token is None else self._verify(token)
        self._check_claims(claims)
        if caller is None:
            caller = self._caller(claims)
            if len(self._verified) >= _REMEMBERED_TOKENS:
                self._verified.clear()
            self._verified[token] = (claims, caller)
        return caller

    def _caller(self, claims: dict[str, Any]) -> Caller:
        role = _text(claims["role"]) if "role" in claims else self._anonymous_role
        if role is None:
            raise GatewayError(
                401,
                "PGRST302",
                "Anonymous access is disabled",
                headers=(("WWW-Authenticate", "Bearer"),),
            )
        return Caller(role, _compact({**claims, "role": role}))

    def _verify(self, token: str) -> dict[str, Any]:
        if self._secret is None:
            raise GatewayError(500, "PGRST300", "Server lacks JWT secret")
        parts = token.split(".")
        if len(parts) != _PARTS:
            raise _undecodable(f"Expected {_PARTS} parts in JWT; got {len(parts)}")
        _check_header(parts)
        try:
            payload = jwt.api_jws.decode(token, self._secret, algorithms=[ALGORITHM])
        except jwt.InvalidTokenError as error:
            raise _wrong_key("None of the keys was able to decode the JWT") from error
        claims = _json(payload)
        if not isinstance(claims, dict):
            raise _invalid_claim("Parsing claims failed")
        return claims

    def _check_claims(self, claims: dict[str, Any]) -> None:
        now = int(self._now())
        expires = _seconds(claims, "exp")
        if expires is not None and now - _ALLOWED_SKEW_SECONDS > expires:
            raise _invalid_claim("JWT expired")
        for claim, message in (("nbf", "JWT not yet valid"), ("iat", "JWT issued at future")):
            moment = _seconds(claims, claim)
            if moment is not None and now + _ALLOWED_SKEW_SECONDS < moment:
                raise _invalid_claim(message)
        self._check_audience(claims.get("aud"))

    def _check_audience(self, audience: object) -> None:
        if audience is None:
            return
        named = [audience] if isinstance(audience, str) else audience
        if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
            raise _invalid_claim("The JWT 'aud' claim must be a string or an array of strings")
        if self._audience is not None and named and self._audience not in named:
            raise _invalid_claim("JWT not in audience")


def bearer_token(authorization: str | None) -> str | None:
    """The token, "" for an empty one, None where the header has another scheme or is absent."""
    scheme, *rest = re.split(r"(?=\s)", authorization or "", maxsplit=1)
    if scheme.lower() != "bearer":
        return None
    return rest[0].lstrip() if rest else ""


def sign(claims: dict[str, Any], secret: str) -> str:
    return jwt.encode(claims, secret, algorithm=ALGORITHM)


def _check_header(parts: list[str]) -> None:
    header = _json(_decoded(parts[0]))
    algorithm = header.get("alg") if isinstance(header, dict) else None
    if algorithm == "none":
        raise _undecodable(
            "Wrong or unsupported encoding algorithm",
            "JWT is unsecured but expected 'alg' was not 'none'",
        )
    if not isinstance(header, dict) or algorithm not in _KNOWN_ALGORITHMS:
        raise _no_crypto()
    for part in parts[1:]:
        _decoded(part)
    if algorithm != ALGORITHM or header.get("kid") is not None:
        raise _wrong_key("No suitable key was found to decode the JWT")


def _decoded(part: str) -> bytes:
    if not _UNPADDED_BASE64URL.fullmatch(part):
        raise _no_crypto()
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error as error:
        raise _no_crypto() from error


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _seconds(claims: dict[str, Any], claim: str) -> int | None:
    """A fraction, and what does not fit into 64 bits, counts as 0."""
    value = claims.get(claim)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _invalid_claim(f"The JWT '{claim}' claim must be a number")
    return int(value) if value == value // 1 and int(value) in _INT64 else 0


def _text(role: object) -> str:
    return role if isinstance(role, str) else _compact(role)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _no_crypto() -> GatewayError:
    return _undecodable("JWT cryptographic operation failed")


def _wrong_key(details: str) -> GatewayError:
    return _undecodable("No suitable key or wrong key type", details)


def _undecodable(message: str, details: str | None = None) -> GatewayError:
    return _unauthorized("PGRST301", message, details)


def _invalid_claim(message: str) -> GatewayError:
    return _unauthorized("PGRST303", message, None)


def _unauthorized(code: str, message: str, details: str | None) -> GatewayError:
    challenge = f'Bearer error="invalid_token", error_description="{message}"'
    return GatewayError(401, code, message, details, headers=(("WWW-Authenticate", challenge),))
