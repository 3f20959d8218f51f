"""Connections and secrets: missing or malformed, a command that needs one does not start."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from fairlease.errors import ConfigurationError
from fairlease.settings.database_url import MALFORMED, is_database_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic.fields import FieldInfo

_JWT_PARTS = 3
_SECRET_KEY_PREFIX = "sb_secret_"  # noqa: S105 - the public prefix of every such key
# What goes into a header as it is. An HTTP client quotes what does not, key and all.
_KEY = re.compile(r"[!-~]+")
_UNFIT = "has a line break or another character that no header carries; copy it again"


class Transport(StrEnum):
    """How runs reach the database; administration always goes directly where it can."""

    POSTGREST = "postgrest"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class SupabaseConnection:
    """Where PostgREST is and what opens it. `opaque`: a `sb_secret_` key, never to be parsed."""

    url: str
    key: SecretStr
    opaque: bool


class _Environ(PydanticBaseSettingsSource):
    """Reads the mapping that it is given, so that nothing depends on the process's own."""

    def __init__(self, settings_cls: type[BaseSettings], environ: Mapping[str, str]) -> None:
        super().__init__(settings_cls)
        self._environ = environ

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        name = str(field.validation_alias)
        return self._environ.get(name), field_name, False

    def __call__(self) -> dict[str, Any]:
        names = {str(f.validation_alias) for f in self.settings_cls.model_fields.values()}
        return {n: self._environ[n].strip() for n in names if self._environ.get(n, "").strip()}


class _Variables(BaseSettings):
    """What was written, unchecked; an empty variable counts as missing."""

    model_config = SettingsConfigDict(extra="ignore", hide_input_in_errors=True)

    supabase_url: str = Field("", validation_alias="SUPABASE_URL")
    service_role_key: SecretStr = Field(SecretStr(""), validation_alias="SUPABASE_SERVICE_ROLE_KEY")
    secret_key: SecretStr = Field(SecretStr(""), validation_alias="SUPABASE_SECRET_KEY")
    database_url: SecretStr = Field(SecretStr(""), validation_alias="FAIRLEASE_DATABASE_URL")
    transport: str = Field("", validation_alias="FAIRLEASE_TRANSPORT")
    function_secrets: SecretStr = Field(SecretStr(""), validation_alias="EDGE_FUNCTION_SECRET")
    sentry_dsn: SecretStr = Field(SecretStr(""), validation_alias="SENTRY_DSN")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        environ = init_settings().get("environ", {})
        return (_Environ(settings_cls, environ),)


class Required:
    """The settings without which a command cannot work; each is checked when it is asked for.

    Every method raises `ConfigurationError`, which names the variable and the remedy and never
    repeats a secret.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._given = _Variables(environ=environ)  # type: ignore[call-arg]

    def transport(self) -> Transport:
        """The one that `FAIRLEASE_TRANSPORT` names, else the one that is configured."""
        asked = self._given.transport.lower()
        if asked:
            if asked not in set(Transport):
                raise ConfigurationError(
                    f"FAIRLEASE_TRANSPORT={asked[:40]!r} is no transport; set postgrest or direct"
                )
            return Transport(asked)
        if self._given.supabase_url:
            return Transport.POSTGREST
        if self._given.database_url.get_secret_value():
            return Transport.DIRECT
        raise ConfigurationError(
            "no database is configured; set SUPABASE_URL and SUPABASE_SECRET_KEY, or "
            "FAIRLEASE_DATABASE_URL"
        )

    def supabase(self) -> SupabaseConnection:
        return SupabaseConnection(self._supabase_url(), *self._supabase_key())

    def has_database_url(self) -> bool:
        return bool(self._given.database_url.get_secret_value())

    def database_url(self) -> SecretStr:
        """A `postgresql://` URL, or libpq's `host=... dbname=...`."""
        text = self._given.database_url.get_secret_value()
        if not text:
            raise ConfigurationError(
                "FAIRLEASE_DATABASE_URL is not set; give postgresql://user:password@host/database"
            )
        if not is_database_url(text):
            raise ConfigurationError(f"FAIRLEASE_DATABASE_URL is no database URL; {MALFORMED}")
        return self._given.database_url

    def function_secrets(self) -> tuple[SecretStr, ...]:
        """Every secret that opens the host; several are valid while one is being replaced."""
        texts = self._given.function_secrets.get_secret_value().split(",")
        secrets = tuple(SecretStr(t.strip()) for t in texts if t.strip())
        if not secrets:
            raise ConfigurationError(
                "EDGE_FUNCTION_SECRET is not set; give the secret that pokes carry in "
                "x-edge-function-secret (several: comma separated)"
            )
        if not all(secret.get_secret_value().isprintable() for secret in secrets):
            raise ConfigurationError(f"EDGE_FUNCTION_SECRET {_UNFIT}")
        return secrets

    def sentry_dsn(self) -> SecretStr | None:
        """None where no alerts are wanted."""
        text = self._given.sentry_dsn.get_secret_value()
        if not text:
            return None
        parts = _split("SENTRY_DSN", text)
        if parts.scheme not in {"http", "https"} or not parts.username or parts.path in {"", "/"}:
            raise ConfigurationError(
                "SENTRY_DSN is no DSN; give https://key@host/project, or leave it out"
            )
        return self._given.sentry_dsn

    def _supabase_url(self) -> str:
        text = self._given.supabase_url
        if not text:
            raise ConfigurationError("SUPABASE_URL is not set; give https://<project>.supabase.co")
        parts = _split("SUPABASE_URL", text)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigurationError("SUPABASE_URL is no http(s) URL; give https://host[:port]")
        if parts.path.rstrip("/") or parts.query or parts.fragment:
            raise ConfigurationError(
                "SUPABASE_URL has a path; give the project's URL alone, without /rest/v1"
            )
        if parts.username is not None:
            raise ConfigurationError("SUPABASE_URL carries credentials; give the URL alone")
        return text.rstrip("/")

    def _supabase_key(self) -> tuple[SecretStr, bool]:
        secret = self._given.secret_key
        if text := secret.get_secret_value():
            if not text.startswith(_SECRET_KEY_PREFIX) or text == _SECRET_KEY_PREFIX:
                raise ConfigurationError(
                    "SUPABASE_SECRET_KEY does not begin with sb_secret_; a JWT belongs in "
                    "SUPABASE_SERVICE_ROLE_KEY"
                )
            if not _KEY.fullmatch(text):
                raise ConfigurationError(f"SUPABASE_SECRET_KEY {_UNFIT}")
            return secret, True
        key = self._given.service_role_key
        if not key.get_secret_value():
            raise ConfigurationError(
                "SUPABASE_SECRET_KEY is not set, nor SUPABASE_SERVICE_ROLE_KEY; give one"
            )
        _check_service_role(key.get_secret_value())
        return key, False


def _split(name: str, text: str) -> Any:
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - a property that raises
    except ValueError:
        raise ConfigurationError(f"{name} is no URL; check host and port") from None
    return parts


def _check_service_role(key: str) -> None:
    """Refuse what is no JWT, and a JWT of a role that may not claim; the signature is not ours."""
    name = "SUPABASE_SERVICE_ROLE_KEY"
    if key.startswith("sb_"):
        raise ConfigurationError(f"{name} is no JWT; an sb_secret_ key goes in SUPABASE_SECRET_KEY")
    if not _KEY.fullmatch(key):
        raise ConfigurationError(f"{name} {_UNFIT}")
    parts = key.split(".")
    if len(parts) != _JWT_PARTS or not all(parts):
        raise ConfigurationError(f"{name} is no JWT; copy the service_role key whole")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        raise ConfigurationError(f"{name} is no JWT; copy the service_role key whole") from None
    role = claims.get("role") if isinstance(claims, dict) else None
    if role in {"anon", "authenticated"}:
        raise ConfigurationError(f"{name} is the key of role {role}; copy the service_role key")
