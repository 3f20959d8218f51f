"""What a hosted project has, on this machine: Postgres with pg_cron, its API, a sender of pokes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlease.local import gateway_process
from fairlease.local.keys import Keys, make_keys
from fairlease.local.services import Service
from stack.pg_cron import PokeSender, postgres_with_cron

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Project:
    """URLs and keys as the dashboard shows them; no table and no function is there yet."""

    database_url: str
    supabase_url: str
    keys: Keys


@contextlib.contextmanager
def project(say: Callable[[str], None]) -> Iterator[Project]:
    """Runs until the end of the block, and leaves nothing."""
    keys = make_keys()
    with contextlib.ExitStack() as running:
        server = running.enter_context(postgres_with_cron())
        environment = gateway_process.environment(server.url(user="authenticator"), keys, 0)
        gateway = Service("gateway", ("-m", gateway_process.__name__), environment, say)
        running.callback(gateway.stop)
        gateway.start()
        running.enter_context(PokeSender(server.url()))
        yield Project(server.url(), gateway.url, keys)
