"""What is to be poked, when and where: from `function.toml`, where the schedule alone stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fairlease.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlease.host.functions import FunctionFolder

# The path of pokes on a host and on Supabase alike.
_PATH = "/functions/v1/"
_PRINTABLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class PokeJob:
    """One function's pokes: `pokes` at once at each tick of `schedule`, which has five fields."""

    function: str
    schedule: str
    pokes: int


def jobs_of(functions: Iterable[FunctionFolder]) -> list[PokeJob]:
    """One job for each function, by name."""
    manifests = [function.manifest for function in functions]
    return sorted(
        (PokeJob(one.name, one.schedule, one.pokes) for one in manifests),
        key=lambda job: job.function,
    )


def poke_url(base: str, function: str) -> str:
    """`base` is checked by `checked_url`."""
    return f"{base}{_PATH}{function}"


def checked_url(base: str) -> str:
    """Where the functions are, without a slash at its end. Raises InvalidInput for anything else.

    A password in it would stand readable among the jobs, and a query would swallow the path.
    """
    remedy = "give http:// or https://, a host, and a port or path where there is one"
    if not _PRINTABLE.fullmatch(base):
        raise InvalidInput(f"--url {base[:60]!r} is no URL: {remedy}")
    try:
        parts = urlsplit(base)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput(f"--url {base[:60]!r} is no URL: {remedy}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidInput(f"--url {base[:60]!r} is no URL: {remedy}")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(f"--url of {host} has a user or password: {remedy}")
    if "?" in base or "#" in base:
        raise InvalidInput(f"--url {base[:60]!r} has a query or fragment: {remedy}")
    return base.rstrip("/").removesuffix(_PATH.rstrip("/"))
