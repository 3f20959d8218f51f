"""The platform's part before PostgREST: the `apikey`, and the token that stands for it.

An opaque key (`sb_secret_...`, `sb_publishable_...`) is not a JWT: PostgREST gets a short-lived
token of the key's role instead, unless the request carries a user's token of its own.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from fairlease.local.gateway.errors import JSON_CONTENT_TYPE, Answer, GatewayError
from fairlease.local.gateway.tokens import Tokens, bearer_token, sign

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TOKEN_LIFETIME_SECONDS = 3600
_OPAQUE_PREFIX = "sb_"
_LEGACY_ROLES = ("anon", "service_role")


class KeyRefused(Exception):
    """The request stops at the platform; `answer` is the platform's own, not PostgREST's."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        body = json.dumps({"message": message, "hint": hint}, separators=(",", ":"))
        self.answer = Answer(401, body.encode(), (("Content-Type", JSON_CONTENT_TYPE),))


class PlatformKeys:
    """`keys`: role by key. Legacy keys are JWTs of the same secret, listed or not."""

    def __init__(
        self, keys: Mapping[str, str], secret: str, tokens: Tokens, now: Callable[[], float]
    ) -> None:
        self._keys = dict(keys)
        self._secret = secret
        self._tokens = tokens
        self._now = now
        self._issued: dict[str, tuple[float, str]] = {}

    def authorization(self, offered: list[str], authorization: str | None, query: str) -> str:
        """What goes to PostgREST as `Authorization`. Raises KeyRefused.

        `offered`: every `apikey` header; without one the query string is looked at.
        """
        keys = set(offered or [value for name, value in parse_qsl(query) if name == "apikey"])
        if not keys:
            raise KeyRefused(
                "No API key found in request", "No `apikey` request header or url param was found."
            )
        if len(keys) > 1:
            raise _invalid()
        key = keys.pop()
        role = self._role(key)
        token = bearer_token(authorization)
        if authorization is None or (token is not None and _same(token, key)):
            return f"Bearer {self._token(role) if key.startswith(_OPAQUE_PREFIX) else key}"
        return authorization

    @staticmethod
    def without_key(query: str) -> str:
        """The query string without the platform's own parameter."""
        return "&".join(part for part in query.split("&") if not part.startswith("apikey="))

    def _role(self, key: str) -> str:
        # Every key is compared, so that the time taken does not tell which one came close.
        matches = [role for known, role in self._keys.items() if _same(known, key)]
        if matches:
            return matches[0]
        if key.startswith(_OPAQUE_PREFIX):
            raise KeyRefused(
                "Unregistered API key",
                "Double check the provided API key as it is not registered for this project.",
            )
        try:
            role = self._tokens.caller(f"Bearer {key}").role
        except GatewayError as error:
            raise _invalid() from error
        if role not in _LEGACY_ROLES:
            raise _invalid()
        return role

    def _token(self, role: str) -> str:
        expires, token = self._issued.get(role, (0.0, ""))
        now = self._now()
        if expires - now < _TOKEN_LIFETIME_SECONDS / 2:
            expires = now + _TOKEN_LIFETIME_SECONDS
            token = sign({"role": role, "iss": "supabase", "exp": int(expires)}, self._secret)
            self._issued[role] = (expires, token)
        return token


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _invalid() -> KeyRefused:
    return KeyRefused(
        "Invalid API key", "Double check your Supabase `anon` or `service_role` API key."
    )
