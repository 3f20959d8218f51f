"""One message through everything: cron, Deno shim, host, drain. Each part is a real program."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from chain.surroundings import Project, project
from fairlease.local.services import Service
from shims.deno import running_shim
from stack.pg_cron import VAULT_SECRET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

QUEUE = FUNCTION = "greetings"
MANIFEST = f'name = "{FUNCTION}"\nkind = "drain"\npokes = 2\nqueues = ["{QUEUE}"]\n'
HANDLERS = """
from typing import Any
from fairlease import Context, Worker

worker = Worker()

@worker.handler("greet")
async def greet(args: dict[str, Any], ctx: Context) -> None:
    print("hello", args["name"], "of", ctx.org, flush=True)
"""
MESSAGE = '{"method": "greet", "args": {"name": "world"}}'
_POLL_SECONDS = 0.2


class ChainBroken(Exception):
    """A link did not do its part."""


@dataclass
class Chain:
    """`say` gets a line for each link; `vault_secret` None: the right one."""

    say: Callable[[str], None]
    patience_seconds: float = 100.0
    vault_secret: str | None = None
    heard: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Raises ChainBroken where the message is not done in time."""
        with (
            tempfile.TemporaryDirectory() as folder,
            project(self.heard.append) as made,
            contextlib.ExitStack() as running,
        ):
            self.say("a fresh Postgres with pgmq and pg_cron, and the API")
            root = Path(folder)
            write_function(root)
            environment = environment_of(made)
            functions = ("--functions", str(root / "functions"))
            self._fairlease(environment, "init", str(root / "supabase"), *functions)
            self._fairlease(environment, "migrate")
            self._fairlease(environment, "queue", "create", QUEUE)
            host = running.enter_context(self._host(root, environment))
            self.say(f"the host serves {FUNCTION} at {host.url}")
            shim = running.enter_context(
                running_shim(
                    root / "supabase" / "functions" / FUNCTION / "index.ts",
                    EDGE_FUNCTION_SECRET=made.keys.function_secret,
                    FAIRLEASE_HOST_URL=host.url,
                )
            )
            self.say(f"Deno serves its shim at {shim.url}")
            with psycopg.connect(made.database_url, autocommit=True) as session:
                self._schedule(session, made, root, environment, shim.url)
                number = self._fairlease(environment, "send", QUEUE, MESSAGE, "--org", "acme")
                self.say(f"message {number.strip()} is sent; the next full minute pokes")
                self._watch(session)

    def _schedule(
        self,
        session: psycopg.Connection,
        made: Project,
        root: Path,
        environment: Mapping[str, str],
        url: str,
    ) -> None:
        secret = self.vault_secret or made.keys.function_secret
        session.execute("select vault.create_secret(%s, %s)", (secret, VAULT_SECRET))
        statements = self._fairlease(
            environment, "cron", "sql", "--url", url, "--functions", str(root / "functions")
        )
        session.execute(statements.encode())
        rows = session.execute("select schedule, jobname from cron.job").fetchall()
        self.say(f"pg_cron has {', '.join(f'{name} at {schedule}' for schedule, name in rows)}")

    def _watch(self, session: psycopg.Connection) -> None:
        self._await(
            session,
            "select status from cron.job_run_details where end_time is not null",
            "pg_cron has ticked: {}",
        )
        status, body = self._await(
            session,
            "select status_code, coalesce(content, error_msg) from net._http_response order by id",
            "the poke was answered {}: {}",
        )
        accepted = 202
        if status != accepted:
            raise ChainBroken(f"the poke was refused: {status} {body}")
        self._await(
            session,
            f"select msg_id, message->>'method' from pgmq.a_{QUEUE}",
            "message {} is done and archived: {}",
        )
        left = session.execute(f"select count(*) from pgmq.q_{QUEUE}").fetchone()
        said = "host: hello world of acme"
        if left != (0,) or self.heard.count(said) != 1:
            raise ChainBroken(f"{left} messages left; the handler said {self.heard.count(said)}x")
        self.say(f"the handler said once: {said.removeprefix('host: ')}")

    def _await(self, session: psycopg.Connection, query: str, line: str) -> tuple[Any, ...]:
        end = time.monotonic() + self.patience_seconds
        while time.monotonic() < end:
            row = session.execute(query.encode()).fetchone()
            if row is not None:
                self.say(line.format(*row))
                return row
            time.sleep(_POLL_SECONDS)
        raise ChainBroken(f"nothing within {self.patience_seconds:.0f} s to say: {line}")

    @contextlib.contextmanager
    def _host(self, root: Path, environment: Mapping[str, str]) -> Iterator[Service]:
        arguments = ("-m", "fairlease.cli.main", "serve", "--port=0", "--functions")
        # By PostgREST, as a hosted project is used; the owner's URL stays with the operator.
        own = {k: v for k, v in environment.items() if k != "FAIRLEASE_DATABASE_URL"}
        host = Service("host", (*arguments, str(root / "functions")), own, self.heard.append)
        try:
            host.start()
            yield host
        finally:
            host.stop()

    def _fairlease(self, environment: Mapping[str, str], *arguments: str) -> str:
        command = [sys.executable, "-m", "fairlease.cli.main", *arguments]
        done = subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode != 0:
            raise ChainBroken(f"fairlease {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout


def write_function(root: Path) -> None:
    """As a person would write it."""
    folder = root / "functions" / FUNCTION
    folder.mkdir(parents=True)
    (folder / "function.toml").write_text(MANIFEST)
    (folder / "handlers.py").write_text(HANDLERS)


def environment_of(made: Project) -> dict[str, str]:
    ours = ("FAIRLEASE_", "SUPABASE_", "EDGE_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return {
        **kept,
        "FAIRLEASE_DATABASE_URL": made.database_url,
        "SUPABASE_URL": made.supabase_url,
        "SUPABASE_SECRET_KEY": made.keys.secret_key,
        "EDGE_FUNCTION_SECRET": made.keys.function_secret,
    }
