"""`fairlease poke`: wake a function, as cron does."""

from __future__ import annotations

import os
from typing import Annotated
from urllib.parse import quote

import httpx
import typer

from fairlease.errors import ConfigurationError, TransientError, Unauthorized, UnexpectedAnswer
from fairlease.settings import Required

_TIMEOUT_SECONDS = 10.0


def poke(
    name: Annotated[str, typer.Argument(help="The function.")],
    url: Annotated[
        str, typer.Option(envvar="FAIRLEASE_HOST_URL", help="The host, http://host:port.")
    ] = "http://127.0.0.1:8787",
) -> None:
    """Poke a function and print the host's answer as one JSON object."""
    if "@" in url:
        raise ConfigurationError("--url carries credentials, which errors would repeat; leave out")
    secret = Required(os.environ).function_secrets()[0].get_secret_value().encode()
    target = f"{url.rstrip('/')}/functions/v1/{quote(name, safe='')}"
    try:
        answer = httpx.post(
            target, headers={b"x-edge-function-secret": secret}, timeout=_TIMEOUT_SECONDS
        )
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        raise ConfigurationError(f"--url {url!r} is no URL; give http://host:port") from None
    except httpx.HTTPError as error:
        raise TransientError(
            f"no host answers at {url} ({type(error).__name__}); start one with `fairlease serve`"
        ) from None
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise Unauthorized("the host refuses our EDGE_FUNCTION_SECRET; give it one of its own")
    if answer.status_code != httpx.codes.ACCEPTED:
        raise UnexpectedAnswer(f"{answer.status_code}: {answer.text}", code=str(answer.status_code))
    typer.echo(answer.text)
