"""The main process: one worker at a time, replaced when its time is over or when it dies."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import queue
import signal
import socket
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels
from granian.server.mp import MPServer

from fairlease.errors import ConfigurationError
from fairlease.host.functions import discover
from fairlease.host.lifetime import lifetime_of
from fairlease.host.stop_signals import LOOP
from fairlease.host.worker import load
from fairlease.settings import Required, load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_READY_LOOK_SECONDS = 0.05
_INSIST_SECONDS = 1.0


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
    `ConfigurationError`; exits with 1 if workers die as fast as they are started.
    """
    check(options, os.environ)
    lifetime, _ = lifetime_of(load_settings(os.environ).knobs, os.environ)
    # A fresh interpreter for each isolate: its clock starts with it, and it inherits no state.
    multiprocessing.set_start_method("spawn", force=True)
    with _reserved(options.host, options.port) as port:
        server = _Server(
            "fairlease",
            address=options.host,
            port=port,
            interface=Interfaces.ASGI,
            workers=1,
            loop=LOOP,
            http=HTTPModes.http1,
            websockets=False,
            log_level=LogLevels.warning,
            log_dictconfig=_LOGGING,
            respawn_failed_workers=True,
            workers_lifetime=lifetime.serving_seconds,
            workers_kill_timeout=lifetime.grace_seconds,
            workers_max_rss=options.max_rss_mb,
        )
        announce = partial(_announce, options.host, port, on_ready)
        threading.Thread(target=announce, daemon=True).start()
        server.serve(target_loader=partial(load, options.folders), wrap_loader=False)


class _Server(MPServer):
    """Granian's, with signals that reach the worker at once and cannot be lost or hang.

    Granian stops its workers from its main loop, which may be waiting, for as long as the grace,
    for a predecessor to end; the successor would not hear of the stop in that time. And its signal
    handlers take a lock that they may have interrupted, or that a second signal then waits for.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._told: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._do_as_told, daemon=True).start()

    def signal_handler_interrupt(self, *_args: Any, **_kwargs: Any) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        self._told.put(self._insist_on_stop)

    def signal_handler_reload(self, *_args: Any, **_kwargs: Any) -> None:
        self._told.put(self._ask_for_successor)

    def shutdown(self, exit_code: int = 0) -> None:
        if self.interrupt_signal:
            self.interrupt_children.clear()  # a worker that heard of the stop by itself
        super().shutdown(exit_code)  # type: ignore[no-untyped-call]

    def _do_as_told(self) -> None:
        while True:
            self._told.get()()

    def _insist_on_stop(self) -> None:
        """Again and again: the main loop may clear its event, or start a worker, in between."""
        self.interrupt_signal = True
        while True:
            for worker in tuple(self.wrks):
                worker.terminate()  # type: ignore[no-untyped-call]
            self.main_loop_interrupt.set()
            time.sleep(_INSIST_SECONDS)

    def _ask_for_successor(self) -> None:
        self.reload_signal = True
        self.main_loop_interrupt.set()


@contextlib.contextmanager
def _reserved(host: str, port: int) -> Iterator[int]:
    """Hold the port while the server runs, since workers share it and none may be a stranger's.

    Workers bind with SO_REUSEPORT, so that two hosts could bind one port without an error and
    share its pokes; a bound socket that does not listen takes no connection.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as strict, socket.socket(family) as shared:
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        strict.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            strict.bind((host, port))
            port = strict.getsockname()[1]
            strict.close()
            shared.bind((host, port))
        except (OSError, OverflowError) as error:
            raise ConfigurationError(_cannot_bind(host, port, error)) from None
        yield port


def _cannot_bind(host: str, port: int, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is taken; stop who has it, or give another with --port"
    return f"cannot listen on {host}:{port} ({error}); give another --host or --port"


def _announce(host: str, port: int, on_ready: Callable[[str], None]) -> None:
    """A server of any address is reached at the loopback one."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared
    while True:
        with contextlib.suppress(OSError), socket.create_connection((reachable, port), 1):
            break
        time.sleep(_READY_LOOK_SECONDS)
    shown = f"[{reachable}]" if ":" in reachable else reachable
    on_ready(f"http://{shown}:{port}")


_LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"generic": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "generic",
            "stream": "ext://sys.stderr",
        }
    },
    "loggers": {"_granian": {"handlers": ["console"], "level": "WARNING", "propagate": False}},
}
