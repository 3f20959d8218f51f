"""The whole of fairlease on one machine: database, gateway, host and cron, in this order."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from fairlease.admin import queues
from fairlease.admin.migrate import migrate
from fairlease.clock import SystemClock
from fairlease.errors import ConfigurationError, FairleaseError
from fairlease.host.functions import FunctionFolder, discover
from fairlease.local import gateway_process
from fairlease.local.bootstrap import bootstrap
from fairlease.local.cron import CronJob
from fairlease.local.cron_thread import CronThread
from fairlease.local.keys import Keys, kept_keys, make_keys
from fairlease.local.postgres import LocalPostgres, available_port
from fairlease.local.services import Service

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType


# For a database that is thrown away at the end.
_NOTHING_TO_LOSE = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}


class ServiceEnded(FairleaseError):
    """A part of the running stack ended by itself."""


@dataclass(frozen=True)
class StackOptions:
    """`data` None: nothing is kept. Ports of 0 or None take free ones.

    `hosts` is the number of host processes, which cron pokes in turns; `host_port` is the first
    one's, the others take free ones. `environment` is what they get, on top of this process's own.
    `cron_scale` 60 makes an hour of schedules pass in a minute.
    """

    functions: Sequence[Path]
    data: Path | None = None
    gateway_port: int = 0
    host_port: int = 0
    database_port: int | None = None
    hosts: int = 1
    cron_scale: float = 1.0
    environment: Mapping[str, str] | None = None
    database_settings: Mapping[str, str] | None = None


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")


class LocalStack:
    """Everything runs between `start` and `stop`, and nothing of it after, however this ends.

    `say` gets what the parts write, line by line.
    """

    def __init__(self, options: StackOptions, say: Callable[[str], None] = _to_stderr) -> None:
        self._options = options
        self._say = say
        self._clock = SystemClock()
        self._running = contextlib.ExitStack()
        self._ended = threading.Event()
        self._first_ended = ""
        self._stopping = False
        self.functions: dict[str, FunctionFolder] = {}
        self.host_urls: list[str] = []
        self._hosts: list[Service] = []
        self._turns = itertools.count()
        self.supabase_url = ""
        self.database_url = ""
        self.keys = make_keys()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Return when functions can be poked. Raises FairleaseError, most often a wrong setting."""
        try:
            self.functions = discover(self._options.functions)
            # Said now rather than after a database was made.
            for port in (self._options.gateway_port, self._options.host_port):
                available_port(port)
            self.keys = self._keys()
            postgres = self._start_database()
            self._start_gateway(postgres)
            self._running.callback(self.stop_hosts)
            self.start_hosts()
            self._start_cron()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """In reverse order; interrupted, what is waited for is killed."""
        self._stopping = True
        self._running.close()

    def start_hosts(self, environment: Mapping[str, str] | None = None) -> None:
        """Again after `stop_hosts`, with another `environment` on top of all else if need be."""
        for number in range(self._options.hosts):
            port = self._options.host_port if number == 0 else 0
            folders = [f"--functions={folder}" for folder in self._options.functions]
            name = "host" if self._options.hosts == 1 else f"host {number + 1}"
            arguments = ("-m", "fairlease.cli.main", "serve", f"--port={port}", *folders)
            service = self._service(
                name, arguments, {**self._environment_of_hosts(), **(environment or {})}
            )
            self._hosts.append(service)
            service.launch()
        for service in self._hosts:
            service.wait_until_ready()
        self.host_urls.extend(service.url for service in self._hosts)

    def stop_hosts(self, grace_seconds: float = 10.0) -> None:
        """Cron pokes nobody from here on; runs may end their messages within the grace."""
        self.host_urls.clear()
        for host in self._hosts:
            host.ask_to_stop()
        deadline = self._clock.monotonic() + grace_seconds
        while self._hosts:
            self._hosts[-1].stop(max(0.0, deadline - self._clock.monotonic()))
            self._hosts.pop()

    def wait(self) -> None:
        """Until a part of the stack ends, which it should not. Raises ServiceEnded."""
        self._ended.wait()
        raise ServiceEnded(f"the {self._first_ended} ended by itself: see what it said above")

    def environment(self) -> dict[str, str]:
        """What an application or a worker needs to use this stack."""
        return {
            "SUPABASE_URL": self.supabase_url,
            "SUPABASE_SECRET_KEY": self.keys.secret_key,
            "SUPABASE_PUBLISHABLE_KEY": self.keys.publishable_key,
            "FAIRLEASE_DATABASE_URL": self.database_url,
            "FAIRLEASE_HOST_URL": self.host_urls[0] if self.host_urls else "",
            "EDGE_FUNCTION_SECRET": self.keys.function_secret,
        }

    def _keys(self) -> Keys:
        data = self._options.data
        if data is None:
            return make_keys()
        try:
            data.mkdir(parents=True, exist_ok=True)
            # A data folder lies in somebody's repository, and it holds secrets.
            data.joinpath(".gitignore").write_text("*\n")
            return kept_keys(data / "keys.json")
        except OSError as error:
            raise ConfigurationError(
                f"cannot use the data folder {data}: {error.strerror}: "
                "change its owner or name another"
            ) from error

    def _start_database(self) -> LocalPostgres:
        options = self._options
        data = options.data / "postgres" if options.data else None
        settings = {**({} if data else _NOTHING_TO_LOSE), **(options.database_settings or {})}
        postgres = LocalPostgres(data, settings, port=options.database_port)
        self._running.callback(postgres.stop)
        postgres.start()
        threading.Thread(target=self._watch_database, args=(postgres,), daemon=True).start()
        bootstrap(postgres)
        self.database_url = postgres.url()
        migrate(self.database_url)
        wanted = {queue for function in self.functions.values() for queue in function.queues}
        queues.ensure(self.database_url, sorted(wanted))
        return postgres

    def _start_gateway(self, postgres: LocalPostgres) -> None:
        url = postgres.url(user="authenticator")
        environment = gateway_process.environment(url, self.keys, self._options.gateway_port)
        gateway = self._service("gateway", ("-m", gateway_process.__name__), environment)
        self._running.callback(gateway.stop)
        gateway.start()
        self.supabase_url = gateway.url

    def _start_cron(self) -> None:
        jobs = [
            CronJob(function.name, function.manifest.schedule, function.manifest.pokes)
            for function in self.functions.values()
        ]
        cron = CronThread(
            jobs,
            next_host=self._next_host,
            secret=self.keys.function_secret,
            say=self._say,
            clock=self._clock,
            scale=self._options.cron_scale,
        )
        self._running.callback(cron.stop)
        cron.start()

    def _service(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> Service:
        return Service(name, arguments, environment, self._say, self._note_the_end)

    def _next_host(self) -> str | None:
        urls = tuple(self.host_urls)
        return urls[next(self._turns) % len(urls)] if urls else None

    def _environment_of_hosts(self) -> dict[str, str]:
        own = {key: value for key, value in os.environ.items() if not key.startswith("SUPABASE_")}
        return {**own, **self.environment(), **(self._options.environment or {})}

    def _watch_database(self, postgres: LocalPostgres) -> None:
        postgres.wait()
        if not self._stopping:
            self._note_the_end("database")

    def _note_the_end(self, name: str) -> None:
        self._first_ended = self._first_ended or name
        self._ended.set()
