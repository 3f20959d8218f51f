from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from stack.operated import Jobs


def test_list_shows_the_newest_first_with_reason_and_error_and_no_payload(jobs: Jobs) -> None:
    old, new = jobs.kill("acme"), jobs.kill("beta", reason="timeout")
    answer = jobs.ask("dlq", "list")
    assert [letter["id"] for letter in answer["dead_letters"]] == [new, old]
    assert (answer["total"], answer["dead_letters"][1]["error"]) == (2, "ValueError: last line")
    shown = jobs.call("dlq", "list").stdout
    assert "no such user" in shown
    assert "ValueError: last line" in shown
    assert "s3cr3t" not in shown


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--org", "ACME"), [0, 2]),
        (("--method", "part"), [1]),
        (("--reason", "TIME"), [1, 2]),
        (("--org", "acme", "--reason", "time"), [2]),
        (("--queue", "other"), []),
        (("--older-than", "1 hour"), [0]),
        (("--limit", "1"), [2]),
    ],
)
def test_filters_select(jobs: Jobs, options: tuple[str, ...], found: list[int]) -> None:
    ids = [
        jobs.kill("acme"),
        jobs.kill("beta", "part", "timeout"),
        jobs.kill("acme", reason="Timeout"),
    ]
    jobs.connection.execute(
        "update fairlease.dead_letters set died_at = now() - interval '2 hours' where id = %s",
        ids[:1],
    )
    answer = jobs.ask("dlq", "list", *options)
    assert [letter["id"] for letter in answer["dead_letters"]] == [ids[i] for i in reversed(found)]


def test_show_keeps_the_payload_back_unless_asked(jobs: Jobs) -> None:
    letter = jobs.kill("acme")
    shown = jobs.call("dlq", "show", letter).stdout
    assert "  ValueError: last line\n" in shown
    assert "s3cr3t" not in shown
    assert jobs.ask("dlq", "show", letter, "--payload")["message"]["args"] == {"secret": "s3cr3t"}


def test_replay_of_one_says_the_new_message(jobs: Jobs) -> None:
    letter, other = jobs.kill("acme"), jobs.kill("acme")
    answer = jobs.call("dlq", "replay", letter)
    sent = jobs.value("select msg_id from pgmq.q_jobs")
    assert answer.stdout == f"dead letter {letter} is message {sent}\nreplayed 1, refused 0\n"
    assert (answer.returncode, jobs.letters()) == (0, [other])


def test_replay_onto_a_live_key_is_refused_by_name_and_keeps_no_other(jobs: Jobs) -> None:
    letters = [jobs.kill("acme", key="k1"), jobs.kill("acme")]
    [live] = jobs.send("acme", key="k1")
    answer = jobs.call("dlq", "replay", "--all", "--yes")
    assert answer.returncode == 3
    assert f"key k1 is live: settle or cancel message {live} first" in answer.stderr
    assert "replayed 1, refused 1" in answer.stdout
    assert jobs.letters() == letters[:1]


def test_a_letter_of_a_queue_that_was_detached_does_not_keep_the_others(jobs: Jobs) -> None:
    lost, kept = jobs.kill("acme"), jobs.kill("acme")
    jobs.connection.execute(
        "update fairlease.dead_letters set queue = 'gone' where id = %s", (lost,)
    )
    answer = jobs.call("dlq", "replay", lost, kept, 999)
    assert (answer.returncode, jobs.letters()) == (3, [lost])
    assert "no queue 'gone' is attached" in answer.stderr
    assert "not there: 999" in answer.stderr


def test_replay_by_filter_takes_the_oldest_up_to_the_limit(jobs: Jobs) -> None:
    ids = [jobs.kill("acme") for _ in range(3)]
    answer = jobs.call("dlq", "replay", "--org", "acme", "--limit", 2, "--yes", "--json")
    assert answer.returncode == 0
    assert jobs.letters() == ids[2:]


def test_purge_removes_what_was_named_and_says_so(jobs: Jobs) -> None:
    ids = [jobs.kill("acme"), jobs.kill("beta"), jobs.kill("acme"), jobs.kill("acme")]
    answer = jobs.call("dlq", "purge", "--org", "acme", "--limit", 2, "--yes")
    assert (answer.stdout, jobs.letters()) == ("removed 2 dead letters\n", [ids[1], ids[3]])
    assert jobs.ask("dlq", "purge", ids[1], "--yes") == {"removed": 1}
    assert jobs.value("select count(*) from pgmq.q_jobs") == 0


@pytest.mark.parametrize("verb", ["replay", "purge"])
def test_without_a_terminal_and_without_yes_nothing_is_done(jobs: Jobs, verb: str) -> None:
    letter = jobs.kill("acme")
    answer = jobs.call("dlq", verb, "--all")
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert "1 dead letters" in answer.stderr
    assert "give --yes" in answer.stderr
    assert jobs.letters() == [letter]


@pytest.mark.parametrize("verb", ["replay", "purge"])
@pytest.mark.parametrize("which", [(), (1, "--all"), (1, "--org", "a"), ("--all", "--org", "a")])
def test_what_is_meant_must_be_clear(jobs: Jobs, verb: str, which: tuple[object, ...]) -> None:
    answer = jobs.call("dlq", verb, *which, "--yes")
    assert answer.returncode == 2
    assert "say which" in answer.stderr


@pytest.mark.parametrize(("typed", "left"), [("n\n", 1), ("y\n", 0)])
def test_on_a_terminal_it_asks(jobs: Jobs, typed: str, left: int) -> None:
    jobs.kill("acme")
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    ended = subprocess.run(
        [sys.executable, "-m", "fairlease.cli.main", "dlq", "purge", "--all"],
        env={**os.environ, "FAIRLEASE_DATABASE_URL": jobs.url},
        stdin=theirs,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert "Remove 1 dead letters for good? [y/N]" in ended.stderr
    assert (ended.returncode, len(jobs.letters())) == (left, left)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", 7), "there is no dead letter 7"),
        (("list", "--older-than", "soon"), "invalid input syntax for type interval"),
    ],
)
def test_what_cannot_be_is_one_line(jobs: Jobs, arguments: tuple[object, ...], said: str) -> None:
    answer = jobs.call("dlq", *arguments)
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert said in answer.stderr


def test_what_a_sender_wrote_steers_no_terminal(jobs: Jobs) -> None:
    letter = jobs.kill("acme", "\x1b[2J[red]\u202eevil", reason="\x1b]0;owned\x07")
    for answer in (jobs.call("dlq", "list"), jobs.call("dlq", "show", letter)):
        assert "\\x1b[2J[red]\\u202eevil" in answer.stdout
        assert not {"\x1b", "\x07", "\u202e"} & set(answer.stdout)
