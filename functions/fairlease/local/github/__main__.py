"""`python -m fairlease.local.github --port 0 --org acme` prints READY and its URL, and serves."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fairlease.clock import SystemClock
from fairlease.local.github.app import LOCAL_TOKEN, Configuration, build
from fairlease.local.github.credentials import App
from fairlease.local.github.server import serve
from fairlease.local.github.throttle import Limits


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fairlease.local.github", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--org", action="append", default=[], help="an organization; repeatable")
    parser.add_argument("--token", action="append", default=[], help=f"default: {LOCAL_TOKEN}")
    parser.add_argument("--app-id", default="", help="a GitHub App, with --app-public-key")
    parser.add_argument("--app-public-key", type=Path, help="PEM file")
    parser.add_argument("--limits", default="{}", help="JSON of the rate limits of every --org")
    parser.add_argument("--durations", type=Path, help="JSON list of seconds, one per create")
    parser.add_argument("--scale", type=float, default=0.0, help="factor on the durations")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end with the parent")
    return parser.parse_args(arguments)


def configuration_of(options: argparse.Namespace) -> Configuration:
    """Raises `ValueError` or `OSError` for what cannot be read."""
    durations: list[Any] = []
    if options.durations is not None:
        durations = TypeAdapter(list[float]).validate_python(
            json.loads(options.durations.read_text(encoding="utf-8"))
        )
    if not (math.isfinite(options.scale) and options.scale >= 0):
        raise ValueError(f"--scale is {options.scale}; give 0 or a positive number")
    app = None
    if options.app_id:
        if options.app_public_key is None:
            raise ValueError("--app-id needs --app-public-key")
        app = App(options.app_id, options.app_public_key.read_text(encoding="utf-8"))
    return Configuration(
        orgs=tuple(options.org),
        tokens=tuple(options.token) or (LOCAL_TOKEN,),
        app=app,
        limits=TypeAdapter(Limits).validate_json(options.limits),
        durations=tuple(durations),
        scale=options.scale,
    )


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        app = build(configuration_of(options), SystemClock())
        asyncio.run(serve(app, options.port, until_stdin_closes=options.until_stdin_closes))
    except ValidationError as error:
        sys.stderr.write(f"not understood: {error}\n")
        return 2
    except (ValueError, OSError) as error:
        sys.stderr.write(f"cannot serve: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Granian's threads still let go of Python objects: that aborts a finalizing interpreter.
    os._exit(code)
