"""Both ways through the load on one stack: processes, pokes over HTTP, real claims."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg

from fairlease.demo.load import LOW, ORGS, URGENT, messages
from fairlease.demo.sampling import Sampler
from fairlease.demo.summary import Counted, Pass
from fairlease.errors import FairleaseError
from fairlease.local.github.app import LOCAL_TOKEN
from fairlease.local.github.process import GitHubServer
from fairlease.local.stack import LocalStack, StackOptions
from fairlease.messages.sending import send
from fairlease.transports.postgres import PostgresRpc

if TYPE_CHECKING:
    from pathlib import Path

    from fairlease.clock import Clock
    from fairlease.demo.utilisation import Sample

HOSTS = 2
# Far beyond the length of a pass: something hangs, and the demonstration says so.
PATIENCE_SECONDS = 240.0
# Nothing is sampled faster than life allows: a fsync per message is not what is shown here.
DATABASE = {"fsync": "off", "synchronous_commit": "off"}

_WHERE: LiteralString = """
select
  (select count(*) from pgmq.a_{urgent}) + (select count(*) from pgmq.a_{low}),
  (select count(*) from pgmq.q_{urgent}) + (select count(*) from pgmq.q_{low}),
  (select count(*) from fairlease.dead_letters)
"""

_EMPTY: LiteralString = "truncate pgmq.a_{urgent}, pgmq.a_{low}"

Watch = Callable[["Sample"], None]


class DemoFailed(FairleaseError):
    """The demonstration did not get to its end."""


@dataclass(slots=True)
class Lines:
    """What the parts of the stack write; the hosts' lines are JSON and are counted."""

    claims: int = 0
    last: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hear(self, line: str) -> None:
        _, _, text = line.partition(": ")
        with self._lock:
            self.last = [*self.last[-9:], line]
            with contextlib.suppress(ValueError):
                said: Any = json.loads(text)
                if isinstance(said, dict) and said.get("event") == "run_ended":
                    self.claims += said["claims"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stack for both passes: so many times faster than life, the load divided by `shrink`."""

    functions: Path
    durations: Path
    scale: float
    shrink: int
    clock: Clock

    def play(self, watch_refill: Watch, watch_batch: Watch) -> tuple[Pass, Pass]:
        """Refill, then the kill switch, on the same load. Raises `DemoFailed` if one hangs."""
        lines = Lines()
        with self._github() as first, self._github() as second:
            options = StackOptions(
                functions=[self.functions],
                hosts=HOSTS,
                cron_scale=self.scale,
                environment=self._environment(first.url, refill=True),
                database_settings=DATABASE,
            )
            with LocalStack(options, lines.hear) as stack:
                refill = self._pass(stack, first, lines, watch_refill)
                _empty_archives(stack.database_url)
                stack.start_hosts(self._environment(second.url, refill=False))
                batch = self._pass(stack, second, lines, watch_batch)
        return refill, batch

    def _pass(self, stack: LocalStack, github: GitHubServer, lines: Lines, watch: Watch) -> Pass:
        """Send the load, wait until all is done, stop the hosts, count."""
        claims_before = lines.claims
        sent = asyncio.run(self._send(stack.database_url))
        samples = self._watch_until_done(stack, sent, lines, watch)
        stack.stop_hosts()
        measured = github.measure()
        archived, waiting, dead = _where_messages_are(stack.database_url)
        return Pass(
            sent=sent,
            archived=archived,
            waiting=waiting,
            dead=dead,
            seconds=_busy_seconds(samples),
            claims=lines.claims - claims_before,
            counted={org: _counted(report) for org, report in measured["orgs"].items()},
            mismatches=measured["mismatches"],
            samples=samples,
        )

    def _github(self) -> GitHubServer:
        arguments = [part for org in ORGS for part in ("--org", org)]
        arguments += ["--durations", str(self.durations), "--scale", str(1 / self.scale)]
        return GitHubServer(*arguments)

    def _environment(self, github_url: str, *, refill: bool) -> dict[str, str]:
        return {
            "GITHUB_API_URL": github_url,
            "GITHUB_TOKEN": LOCAL_TOKEN,
            "FAIRLEASE_TIME_SCALE": str(self.scale),
            "FAIRLEASE_ORG_SLOT_CONTINUOUS_REFILL": "1" if refill else "0",
            "FAIRLEASE_LOG_FORMAT": "json",
        }

    async def _send(self, database_url: str) -> int:
        rpc = PostgresRpc(database_url)
        try:
            sent = [await send(rpc, q, messages(q, shrink=self.shrink)) for q in (URGENT, LOW)]
        finally:
            await rpc.aclose()
        return sum(len(queue.ids) for queue in sent)

    def _watch_until_done(
        self, stack: LocalStack, sent: int, lines: Lines, watch: Watch
    ) -> list[Sample]:
        def all_done(sample: Sample) -> bool:
            watch(sample)
            return sum(sample.done.values()) >= sent

        with Sampler(stack.database_url, self.clock) as sampler:
            if not sampler.wait_until(all_done, PATIENCE_SECONDS):
                left = sent - sum(sampler.samples[-1].done.values())
                raise DemoFailed(
                    f"{left} of {sent} messages are not done after {PATIENCE_SECONDS:.0f} s; "
                    f"the last that was said: {lines.last[-1:]}"
                )
        return sampler.samples


def _counted(report: dict[str, Any]) -> Counted:
    return Counted(
        max_in_flight=report["max_in_flight"],
        done=frozenset(report["messages_done"]),
        duplicated=frozenset(report["messages_duplicated"]),
        series=[(at, count) for at, count in report["series"]],
    )


def _where_messages_are(database_url: str) -> tuple[int, int, int]:
    """Archived, still in a queue, dead."""
    with psycopg.connect(database_url) as session:
        row = session.execute(_WHERE.format(urgent=URGENT, low=LOW)).fetchone()
    assert row is not None  # noqa: S101 - three counts are one row
    return row[0], row[1], row[2]


def _empty_archives(database_url: str) -> None:
    """So that the second pass counts its own."""
    with psycopg.connect(database_url) as session:
        session.execute(_EMPTY.format(urgent=URGENT, low=LOW))


def _busy_seconds(samples: list[Sample]) -> float:
    """From the first message in flight to the last one done."""
    busy = [sample.at for sample in samples if sample.in_flight]
    return busy[-1] - busy[0] if busy else 0.0
