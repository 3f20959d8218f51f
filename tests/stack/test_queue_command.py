from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import psycopg

    from cli import Cli


def listed(cli: Cli, url: str) -> dict[str, dict[str, Any]]:
    answer = cli("queue", "list", "--json", url=url)
    return {queue["queue"]: queue for queue in json.loads(answer.stdout)["queues"]}


def test_create_makes_and_attaches(cli: Cli, database: str) -> None:
    answer = cli("queue", "create", "letters", "--max-attempts", 8, url=database)
    assert (answer.returncode, answer.stdout) == (0, "created and attached queue letters\n")
    queue = listed(cli, database)["letters"]
    assert (queue["attached"], queue["max_attempts"]) == (True, 8)


def test_create_of_an_existing_queue_and_attach_of_a_missing_one_name_the_remedy(
    cli: Cli, database: str
) -> None:
    cli("queue", "create", "letters", url=database)
    again = cli("queue", "create", "letters", url=database)
    assert again.returncode == 2
    assert again.stderr.endswith("exists already: `fairlease queue attach` it\n")
    missing = cli("queue", "attach", "leters", url=database)
    assert missing.stderr.endswith("no queue 'leters': `fairlease queue create` it\n")
    assert list(listed(cli, database)) == ["letters"]


def test_attach_takes_a_queue_of_pgmq_and_changes_only_what_is_given(
    cli: Cli, connection: psycopg.Connection, database: str
) -> None:
    connection.execute("select pgmq.create('letters')")
    assert listed(cli, database)["letters"]["attached"] is False
    first = ("--on-success", "delete", "--retention", "30 days")
    assert cli("queue", "attach", "letters", *first, url=database).returncode == 0
    assert cli("queue", "attach", "letters", "--max-attempts", 5, url=database).returncode == 0
    queue = listed(cli, database)["letters"]
    policy = (queue["on_success"], queue["max_attempts"], queue["retention"])
    assert policy == ("delete", 5, "30 days")


@pytest.mark.parametrize("name", ["My-Queue_1", "x" * 47, "2fast"])
def test_unusual_name_that_postgres_can_hold_is_taken(cli: Cli, database: str, name: str) -> None:
    assert cli("queue", "create", name, url=database).returncode == 0
    assert cli("queue", "attach", name, url=database).returncode == 0
    assert listed(cli, database)[name]["attached"] is True


@pytest.mark.parametrize(
    ("name", "said"),
    [("a b", "not allowed"), ('a"b', "not allowed"), ("x" * 60, "60 bytes: use at most 47")],
)
def test_impossible_name_is_one_line_from_the_database(
    cli: Cli, database: str, name: str, said: str
) -> None:
    answer = cli("queue", "create", name, url=database)
    assert (answer.returncode, answer.stderr.count("\n")) == (3, 1)
    assert said in answer.stderr


@pytest.mark.parametrize(
    "option", [("--retention", "some time"), ("--resolver", "no.such(jsonb, jsonb)")]
)
def test_policy_that_postgres_cannot_read_is_one_line(
    cli: Cli, database: str, option: tuple[str, str]
) -> None:
    answer = cli("queue", "create", "letters", *option, url=database)
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert listed(cli, database) == {}


def test_database_without_our_schema_names_the_remedy(cli: Cli, pgmq_database: str) -> None:
    answer = cli("queue", "list", url=pgmq_database)
    assert answer.returncode == 2
    assert "run `fairlease migrate` first" in answer.stderr


def test_list_is_a_table_for_people(cli: Cli, database: str) -> None:
    cli("queue", "create", "letters", url=database)
    assert "letters" in cli("queue", "list", url=database).stdout


def test_notify_tells_of_new_messages_until_it_is_turned_off(
    cli: Cli, connection: psycopg.Connection, database: str
) -> None:
    throttles = "select queue_name, throttle_interval_ms from pgmq.notify_insert_throttle"
    cli("queue", "create", "letters", url=database)
    answer = cli("queue", "notify", "letters", "--throttle-ms", 10, url=database)
    assert (answer.returncode, answer.stdout) == (0, "queue letters tells of new messages\n")
    assert connection.execute(throttles).fetchall() == [("letters", 10)]
    assert cli("queue", "notify", "letters", "--off", url=database).returncode == 0
    assert connection.execute(throttles).fetchall() == []
    missing = cli("queue", "notify", "leters", url=database)
    assert missing.stderr.endswith("no queue 'leters': `fairlease queue create` it\n")
