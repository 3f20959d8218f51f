"""`message`, and what an operator asks of `queue`: where messages are, and why they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sql.worker import done, outcome

if TYPE_CHECKING:
    from cli import Cli
    from stack.operated import Jobs


def states(jobs: Jobs, *options: object) -> dict[int, str]:
    found = jobs.ask("message", "list", "jobs", *options)["messages"]
    return {message["msg_id"]: message["state"] for message in found}


def of_every_state(jobs: Jobs) -> dict[int, str]:
    retried, running, ready = jobs.send("acme", count=3)
    [delayed] = jobs.send("beta", "part")
    jobs.connection.execute(
        "update pgmq.q_jobs set vt = now() + interval '1 hour' where msg_id = %s", (delayed,)
    )
    deliveries = jobs.worker().claim(n=2, pin_org="acme").deliveries
    jobs.worker().settle_only(outcome("retry", deliveries[0], after_ms=60_000, error="e"))
    return {retried: "retrying", running: "running", ready: "ready", delayed: "delayed"}


def stats(jobs: Jobs) -> dict[str, Any]:
    [queue] = jobs.ask("queue", "stats")["queues"]
    return queue


def test_message_list_names_the_state_and_selects(jobs: Jobs) -> None:
    expected = of_every_state(jobs)
    assert states(jobs) == expected
    for msg_id, state in expected.items():
        assert states(jobs, "--state", state) == {msg_id: state}
    assert len(states(jobs, "--org", "ACME")) == 3
    assert len(states(jobs, "--method", "part")) == 1
    assert len(states(jobs, "--limit", 2)) == 2
    shown = jobs.call("message", "list", "jobs").stdout
    assert "retrying" in shown
    assert "s3cr3t" not in shown


def test_message_show_finds_it_wherever_it_went(jobs: Jobs) -> None:
    waiting, archived = jobs.send("acme", count=2)
    jobs.kill("beta")
    first, second = jobs.worker().claim(n=2, pin_org="acme").deliveries
    jobs.worker().settle_only(outcome("retry", first, error="boom"), done(second))

    def places(msg_id: int) -> list[str]:
        return [place["where"] for place in jobs.ask("message", "show", "jobs", msg_id)["places"]]

    assert [places(msg_id) for msg_id in (waiting, archived, archived + 1)] == [
        ["queue"],
        ["archive"],
        ["dead_letters"],
    ]
    shown = jobs.call("message", "show", "jobs", waiting).stdout
    assert "last_error: boom" in shown
    assert "s3cr3t" not in shown
    assert "s3cr3t" in jobs.call("message", "show", "jobs", waiting, "--payload").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("message", "show", "jobs", 99), "has no message 99"),
        (("message", "list", "nowhere"), "no queue 'nowhere' is attached"),
        (("queue", "pause", "nowhere"), "no queue 'nowhere' is attached"),
        (("queue", "purge", "nowhere", "--yes"), "no queue 'nowhere' is attached"),
    ],
)
def test_what_is_not_there_is_one_line(
    jobs: Jobs, arguments: tuple[object, ...], said: str
) -> None:
    answer = jobs.call(*arguments)
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert said in answer.stderr


def test_stats_say_what_holds_a_queue_up(jobs: Jobs) -> None:
    assert stats(jobs)["held_up_by"] == []
    jobs.kill("acme")
    jobs.send("acme", count=2)
    queue = stats(jobs)
    assert (queue["ready"], queue["slots"], queue["dead_letters"]) == (2, 0, 1)
    assert queue["held_up_by"] == ["nobody drains: no slot is held"]
    jobs.worker().claim()
    assert stats(jobs)["held_up_by"] == []
    jobs.call("org", "pause", "acme")
    assert stats(jobs)["held_up_by"] == ["1 orgs paused"]
    jobs.call("circuit", "open", "acme")
    assert stats(jobs)["held_up_by"] == ["1 orgs paused", "1 circuits open"]
    jobs.call("queue", "pause", "jobs")
    assert stats(jobs)["held_up_by"] == ["the queue is paused"]
    assert "the queue is paused" in jobs.call("queue", "stats").stdout


def test_a_paused_queue_waits_and_a_resumed_one_runs(jobs: Jobs) -> None:
    jobs.send("acme")
    assert jobs.call("queue", "pause", "jobs").stdout == "queue jobs is paused\n"
    assert jobs.call("queue", "pause", "jobs").stdout == "queue jobs was paused already\n"
    assert jobs.worker().claim().cause == "paused"
    assert jobs.ask("queue", "list")["queues"][0]["paused"] is True
    assert jobs.call("queue", "resume", "jobs").stdout == "queue jobs is running\n"
    assert jobs.worker().claim().status == "claimed"


def test_purge_asks_and_leaves_what_runs(jobs: Jobs) -> None:
    running = next(i for i, state in of_every_state(jobs).items() if state == "running")
    refused = jobs.call("queue", "purge", "jobs")
    assert refused.returncode == 2
    assert "Delete the 3 messages that wait in jobs" in refused.stderr
    assert len(states(jobs)) == 4
    said = jobs.call("queue", "purge", "jobs", "--yes").stdout
    assert said == "deleted 3 messages of jobs; 1 are running and were left\n"
    assert states(jobs) == {running: "running"}
    assert jobs.value("select count(*) from pgmq.a_jobs") == 0


def test_purge_takes_more_than_a_chunk_and_frees_keys(jobs: Jobs) -> None:
    jobs.send("acme", count=2500)
    [held] = jobs.send("acme", key="k")
    assert jobs.ask("queue", "purge", "jobs", "--yes")["removed"] == 2501
    assert jobs.send("acme", key="k") != [held]


@pytest.mark.parametrize(
    "command",
    [
        ("dlq", "list"),
        ("circuit", "list"),
        ("org", "list"),
        ("slots", "list"),
        ("queue", "stats"),
        ("message", "list", "jobs"),
    ],
)
def test_a_database_without_our_schema_names_the_remedy(
    cli: Cli, pgmq_database: str, command: tuple[str, ...]
) -> None:
    answer = cli(*command, url=pgmq_database)
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert "run `fairlease migrate` first" in answer.stderr
