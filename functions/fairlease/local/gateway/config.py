"""What a gateway is told at its start."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlease.errors import ConfigurationError
from fairlease.local.gateway.faults import Faults

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHORTEST_SECRET = 32
_TX_ENDS = ("commit", "commit-allow-override", "rollback", "rollback-allow-override")


@dataclass(frozen=True, kw_only=True)
class GatewayConfig:
    """The settings of PostgREST that matter to RPCs, under its names, and those of the platform.

    `database_url` logs in as the authenticator role. `api_keys` maps each key to its role: with
    it the platform's key check stands before PostgREST, with None requests go straight to it.
    `admin_token` opens the routes under `/_gateway`. `faults` can be changed while it runs.
    """

    database_url: str = field(repr=False)
    jwt_secret: str | None = field(default=None, repr=False)
    jwt_aud: str | None = None
    db_schemas: tuple[str, ...] = ("public",)
    db_extra_search_path: tuple[str, ...] = ("public", "extensions")
    db_anon_role: str | None = "anon"
    db_channel: str = "pgrst"
    db_max_rows: int | None = 1000
    db_pool: int = 10
    db_pool_acquisition_timeout_seconds: float = 10.0
    db_tx_end: str = "commit"
    api_keys: Mapping[str, str] | None = field(default=None, repr=False)
    admin_token: str = field(default_factory=secrets.token_urlsafe, repr=False)
    faults: Faults = field(default_factory=Faults, repr=False)

    def __post_init__(self) -> None:
        if not self.database_url:
            raise ConfigurationError("database_url: give the authenticator role's URL")
        if not self.db_schemas:
            raise ConfigurationError("db_schemas: name at least one schema to expose")
        if self.db_tx_end not in _TX_ENDS:
            raise ConfigurationError(f"db_tx_end: use one of {', '.join(_TX_ENDS)}")
        if self.db_max_rows is not None and self.db_max_rows < 0:
            raise ConfigurationError("db_max_rows: use a number from 0, or None for no limit")
        if self.jwt_secret is not None and len(self.jwt_secret) < _SHORTEST_SECRET:
            raise ConfigurationError(
                f"jwt_secret: use {_SHORTEST_SECRET} characters or more, as PostgREST wants"
            )
        if self.api_keys is not None and self.jwt_secret is None:
            raise ConfigurationError(
                "api_keys: need a jwt_secret, from which their tokens are made"
            )

    @property
    def tx_override_allowed(self) -> bool:
        return self.db_tx_end.endswith("-allow-override")

    @property
    def tx_rolls_back(self) -> bool:
        return self.db_tx_end.startswith("rollback")
