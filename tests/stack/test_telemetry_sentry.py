"""A real host that reports to a real server: check-ins, failures, knobs, and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlease.admin import queues
from stack.hosts import fails_to_start, running_host, write_task
from stack.test_host_database import send, write_adder
from unit.telemetry.ingest import ingest

if TYPE_CHECKING:
    from pathlib import Path

FAILS = "async def run(ctx):\n    raise ValueError('a payload')\n"


def test_pokes_are_check_ins_and_a_failed_run_and_a_knob_are_issues(tmp_path: Path) -> None:
    write_task(tmp_path, "fails", FAILS)
    with ingest() as received:
        variables = {"SENTRY_DSN": received.dsn, "FAIRLEASE_MAX_CRASHES": "many"}
        with running_host(tmp_path, **variables) as host:
            for _ in range(2):
                assert host.poke("fails").json()["status"] == "accepted"
            assert received.wait_for(lambda: len(received.items) >= 5)
            # What still waits is sent before the process ends.
            host.poke("fails")
            host.process.terminate()
            assert host.wait() == 0
    check_ins = received.of_type("check_in")
    assert [(one["monitor_slug"], one["status"]) for one in check_ins] == [("fails", "ok")] * 3
    assert check_ins[0]["monitor_config"]["schedule"]["value"] == "* * * * *"
    groups = [event["fingerprint"][1:] for event in received.events]
    assert groups.count(["run", "ValueError"]) == 3
    assert groups.count(["knob", "FAIRLEASE_MAX_CRASHES", "unparseable"]) == 1
    failed = [event for event in received.events if "exception" in event]
    assert all("a payload" not in event["exception"]["values"][0]["value"] for event in failed)


def test_a_message_that_fails_is_an_issue_with_its_tags(database: str, tmp_path: Path) -> None:
    queues.ensure(database, ["sums"])
    send(database, 1, 2, method="nobody_has_this")
    with ingest() as received:
        variables = {"SENTRY_DSN": received.dsn, "FAIRLEASE_DATABASE_URL": database}
        with running_host(write_adder(tmp_path), **variables) as host:
            host.poke("adder")
            assert received.wait_for(lambda: bool(received.events))
    (event,) = received.events
    assert event["fingerprint"][:2] == ["fairlease", "message"]
    tags = event["tags"]
    assert (tags["org"], tags["queue"], tags["outcome"]) == ("acme", "sums", "dead")


def test_a_dsn_that_is_none_is_said_at_start_in_one_line(tmp_path: Path) -> None:
    write_task(tmp_path, "fails", FAILS)
    failed = fails_to_start(tmp_path, SENTRY_DSN="sentry.example.com")
    assert failed.returncode == 2
    assert failed.stderr.startswith("fairlease: SENTRY_DSN is no DSN")
    assert failed.stderr.count("\n") == 1
