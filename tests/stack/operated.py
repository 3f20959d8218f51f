"""A queue `jobs` in the states that an operator meets, for the tests of the commands."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg.types.json import Jsonb

from sql.worker import Worker, outcome

if TYPE_CHECKING:
    import psycopg

    from cli import Answer, Cli


@dataclass
class Jobs:
    connection: psycopg.Connection
    cli: Cli
    url: str

    def __post_init__(self) -> None:
        self.connection.execute("select fairlease.attach_queue('jobs', unique_keys => true)")

    def call(self, *arguments: object) -> Answer:
        return self.cli(*arguments, url=self.url)

    def ask(self, *arguments: object) -> Any:
        """What a command says as JSON."""
        answer = self.call(*arguments, "--json")
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout)

    def worker(self, holder: str = "h1", **limits: Any) -> Worker:
        hired = Worker(self.connection, holder)
        hired.limits |= {"max_per_org": 8, **limits}
        return hired

    def send(self, org: str, method: str = "greet", count: int = 1, **said: Any) -> list[int]:
        message = {"message": {"method": method, "args": {"secret": "s3cr3t"}}, "org": org, **said}
        row = self.connection.execute(
            "select pgmq_public.send_messages('jobs', %s)", (Jsonb([message] * count),)
        ).fetchone()
        assert row is not None
        return row[0]["ids"]

    def kill(
        self, org: str, method: str = "greet", reason: str = "no such user", **said: Any
    ) -> int:
        """Send a message and let it die; the id of its dead letter."""
        self.send(org, method, **said)
        worker = self.worker("undertaker")
        [delivery] = worker.claim(pin_org=org).deliveries
        error = "Traceback\n  in f\nValueError: last line"
        assert worker.settle_only(outcome("dead", delivery, reason=reason, error=error)) == [
            "applied"
        ]
        worker.release()
        return self.value("select max(id) from fairlease.dead_letters")

    def value(self, query: str) -> Any:
        row = self.connection.execute(query).fetchone()
        assert row is not None
        return row[0]

    def letters(self) -> list[int]:
        rows = self.connection.execute("select id from fairlease.dead_letters order by id")
        return [row[0] for row in rows.fetchall()]
