"""The main process: one worker at a time, replaced when its time is over or when it dies."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels

from fairlease.host.functions import discover
from fairlease.host.lifetime import lifetime_of
from fairlease.host.listener import BACKLOG, listen, url_of
from fairlease.host.stop_signals import LOOP
from fairlease.host.succession import Succession
from fairlease.host.worker import load
from fairlease.settings import Required, load_settings
from fairlease.telemetry.logs import configure_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

# A client that sends its headers more slowly, or lets a connection idle, makes room for others.
_HEADERS_MILLISECONDS = 10_000
_MEMORY_LOOK_SECONDS = 5


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Where to listen and what to serve; port 0 takes a free one."""

    folders: tuple[Path, ...]
    host: str = "127.0.0.1"
    port: int = 8787
    max_rss_mb: int | None = None


def check(options: ServeOptions, environ: Mapping[str, str]) -> None:
    """Everything that would fail in the worker, said here in one line, before it starts."""
    Required(environ).function_secrets()
    Required(environ).sentry_dsn()
    functions = discover(options.folders)
    for function in functions.values():
        function.check()
    if any(function.queues for function in functions.values()):
        from fairlease.app import App  # noqa: PLC0415 - a host of tasks needs no database

        App(environ)


def serve(options: ServeOptions, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, in the main thread.

    `on_ready` is called once, from a thread, with the URL that accepts connections. Raises
    `ConfigurationError`; exits with 1 if several isolates in a row died before they served.
    """
    check(options, os.environ)
    configure_logs(as_json=os.environ.get("FAIRLEASE_LOG_FORMAT") == "json")
    lifetime, _ = lifetime_of(load_settings(os.environ).knobs, os.environ)
    # A fresh interpreter for each isolate: its clock starts with it, and it inherits no state.
    multiprocessing.set_start_method("spawn", force=True)
    with listen(options.host, options.port) as listener:
        url = url_of(listener)
        server = Succession(
            "fairlease",
            listener=listener,
            on_ready=partial(on_ready, url),
            backlog=BACKLOG,
            interface=Interfaces.ASGI,
            workers=1,
            loop=LOOP,
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(header_read_timeout=_HEADERS_MILLISECONDS),
            websockets=False,
            log_level=LogLevels.warning,
            log_dictconfig=_LOGGING,
            respawn_failed_workers=True,
            workers_lifetime=lifetime.serving_seconds,
            workers_kill_timeout=lifetime.grace_seconds,
            workers_max_rss=options.max_rss_mb,
            rss_sample_interval=_MEMORY_LOOK_SECONDS,
        )
        server.serve(target_loader=partial(load, options.folders, url), wrap_loader=False)


# Everything goes through the handler of the root logger, as one kind of lines.
_LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {},
    "loggers": {"_granian": {"handlers": [], "level": "WARNING", "propagate": True}},
}
