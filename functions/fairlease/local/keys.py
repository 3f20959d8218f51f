"""The secrets of a local stack, made once for each data folder."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from fairlease.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Keys:
    """What Supabase's dashboard would show, and the secret of pokes."""

    jwt_secret: str
    secret_key: str
    publishable_key: str
    function_secret: str


def make_keys() -> Keys:
    return Keys(
        jwt_secret=secrets.token_urlsafe(32),
        secret_key=f"sb_secret_{secrets.token_urlsafe(24)}",
        publishable_key=f"sb_publishable_{secrets.token_urlsafe(24)}",
        function_secret=secrets.token_urlsafe(24),
    )


def kept_keys(file: Path) -> Keys:
    """Those of the file, which is made if missing. Raises ConfigurationError for a broken one."""
    try:
        return Keys(**json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        keys = make_keys()
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{file} is damaged: remove it to get new keys") from error
    fresh = file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        json.dump(asdict(keys), stream)
    fresh.rename(file)
    return keys
