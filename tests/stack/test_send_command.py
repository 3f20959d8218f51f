from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from fairlease.cli.main import app
from fairlease.errors import CallRefused, InvalidInput

if TYPE_CHECKING:
    import psycopg
    from click.testing import Result

QUEUE = "sent"


@pytest.fixture
def attached(connection: psycopg.Connection) -> psycopg.Connection:
    connection.execute("select fairlease.attach_queue(%s, unique_keys => true)", [QUEUE])
    return connection


def run(database: str, *arguments: str, stdin: str | None = None) -> Result:
    environment = {"FAIRLEASE_DATABASE_URL": database, "FAIRLEASE_TRANSPORT": "direct"}
    return CliRunner(env=environment).invoke(app, ["send", *arguments], input=stdin)


def rows(connection: psycopg.Connection) -> list[tuple[Any, ...]]:
    return connection.execute(
        f"select msg_id, message, headers ->> 'x-org' from pgmq.q_{QUEUE} order by msg_id"
    ).fetchall()


def test_a_message_is_sent_for_its_org(attached: psycopg.Connection, database: str) -> None:
    result = run(database, QUEUE, '{"method": "m"}', "--org", "acme", "--json")
    (row,) = rows(attached)
    assert json.loads(result.stdout) == {"ids": [row[0]], "existing": []}
    assert row[1:] == ({"method": "m"}, "acme")


def test_a_live_key_is_said_and_not_sent_again(attached: psycopg.Connection, database: str) -> None:
    first = run(database, QUEUE, "{}", "--key", "k").stdout.strip()
    assert run(database, QUEUE, "{}", "--key", "k").stdout.strip() == f"{first} was live already"
    assert len(rows(attached)) == 1


def test_lines_of_standard_input_are_sent_all_or_none(
    attached: psycopg.Connection, database: str
) -> None:
    bad = run(database, QUEUE, "-", stdin='{"n": 1}\n{"n": "\\u0000"}\n')
    assert isinstance(bad.exception, InvalidInput)
    assert "message 1: $.n: contains NUL" in str(bad.exception)
    assert rows(attached) == []
    good = run(database, QUEUE, "-", stdin='{"n": 1}\n\n9223372036854775808\n')
    assert good.exit_code == 0
    assert [row[1] for row in rows(attached)] == [{"n": 1}, 2**63]


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ([QUEUE, "{oops"], InvalidInput, "message 1 is not JSON"),
        ([QUEUE, "[1e400]"], InvalidInput, r"\$\[0\]: inf is not JSON"),
        (["nowhere", "{}"], CallRefused, "nowhere"),
        ([QUEUE, "-", "--key", "k"], InvalidInput, "--key is for one message"),
    ],
)
def test_what_cannot_be_sent_is_named(
    attached: psycopg.Connection,
    database: str,
    arguments: list[str],
    error: type[Exception],
    said: str,
) -> None:
    result = run(database, *arguments, stdin="1\n2\n")
    assert isinstance(result.exception, error)
    with pytest.raises(error, match=said):
        raise result.exception


def test_the_knob_says_how_large_a_message_may_be(
    attached: psycopg.Connection, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps("x" * 2_000_000)
    refused = run(database, QUEUE, text)
    assert "has 2000002 bytes, the limit is 1048576" in str(refused.exception)
    monkeypatch.setenv("FAIRLEASE_MESSAGE_SIZE_LIMIT_BYTES", "2000002")
    assert run(database, QUEUE, text).exit_code == 0
    assert len(rows(attached)) == 1
