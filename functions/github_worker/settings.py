"""What the worker must be told: how to authenticate, and where the API is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from fairlease import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_API_URL = "https://api.github.com"
DEFAULT_TIMEOUT_SECONDS = 100.0


class _Environment(BaseSettings):
    """The variables as they stand; an empty one counts as absent."""

    model_config = SettingsConfigDict(env_ignore_empty=True, extra="ignore")

    github_token: SecretStr | None = None
    github_app_id: str | None = None
    github_app_private_key: SecretStr | None = None
    github_api_url: str = DEFAULT_API_URL
    github_timeout_seconds: str = str(DEFAULT_TIMEOUT_SECONDS)


@dataclass(frozen=True, slots=True)
class AppKey:
    """A GitHub App; `private_key` is a PEM."""

    app_id: str
    private_key: SecretStr


@dataclass(frozen=True, slots=True)
class GitHubSettings:
    """Credentials are an App's if it is set, else the token's. The timeout is per request."""

    credentials: AppKey | SecretStr
    api_url: str
    timeout_seconds: float

    @property
    def variables(self) -> str:
        """Which variables a person has to look at when the credentials are refused."""
        if isinstance(self.credentials, AppKey):
            return "GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY"
        return "GITHUB_TOKEN"


def load_settings(overrides: Mapping[str, str] | None = None) -> GitHubSettings:
    """From the environment. Raises `ConfigurationError` that names the variable and the remedy.

    `overrides` are fields of the environment in lower case, for a caller that has its own.
    """
    environment = _Environment(**(overrides or {}))  # type: ignore[arg-type]
    return GitHubSettings(
        credentials=_credentials(environment),
        api_url=_api_url(environment.github_api_url),
        timeout_seconds=_timeout(environment.github_timeout_seconds),
    )


def _credentials(environment: _Environment) -> AppKey | SecretStr:
    app_id, key = environment.github_app_id, environment.github_app_private_key
    if app_id is not None and key is not None:
        return AppKey(app_id.strip(), _private_key(key))
    if app_id is not None:
        raise ConfigurationError("GITHUB_APP_PRIVATE_KEY is missing; GITHUB_APP_ID needs it (PEM)")
    if key is not None:
        raise ConfigurationError("GITHUB_APP_ID is missing; GITHUB_APP_PRIVATE_KEY needs it")
    token = environment.github_token
    if token is None or not token.get_secret_value().strip():
        raise ConfigurationError(
            "GITHUB_TOKEN is missing; set it, or GITHUB_APP_ID with GITHUB_APP_PRIVATE_KEY"
        )
    text = token.get_secret_value().strip()
    if not text.isascii() or any(not c.isprintable() or c.isspace() for c in text):
        raise ConfigurationError("GITHUB_TOKEN is malformed; give one token without white space")
    return SecretStr(text)


def _private_key(key: SecretStr) -> SecretStr:
    # Many secret stores keep one line: the line breaks of a PEM arrive as backslash and n.
    text = key.get_secret_value().replace("\\n", "\n").strip() + "\n"
    try:
        load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError):
        raise ConfigurationError(
            "GITHUB_APP_PRIVATE_KEY is malformed; give the App's private key as PEM, no password"
        ) from None
    return SecretStr(text)


def _api_url(text: str) -> str:
    try:
        parts = urlsplit(text.strip())
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.username or parts.query or parts.fragment:
        raise ConfigurationError(
            f"GITHUB_API_URL is malformed; give http(s)://host[:port][/path], by default "
            f"{DEFAULT_API_URL}"
        )
    return text.strip().rstrip("/")


def _timeout(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ConfigurationError(
            f"GITHUB_TIMEOUT_SECONDS is {text[:40]!r}; give seconds above 0, by default "
            f"{DEFAULT_TIMEOUT_SECONDS:.0f}"
        )
    return seconds
