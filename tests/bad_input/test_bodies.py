"""Bodies at the edge of what JSON can say: carried exactly, dead by name, shown to an operator."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bad_input.bench import QUEUE
from fairlease import Context, NewMessage
from fairlease.errors import InvalidInput
from fairlease.messages.sending import send

if TYPE_CHECKING:
    import psycopg

    from bad_input.bench import Bench
    from cli import Cli

DEEP = "[" * 10_000 + "]" * 10_000


async def test_every_value_that_may_be_sent_comes_to_its_handler_as_it_was(bench: Bench) -> None:
    said = {
        "edge": 2**63,
        "large": 10**400,
        "longest": 10**4298,
        "float": 0.1,
        "text": "\U0001f600 \u05e9\u05dc\u05d5\u05dd \u202e e\u0301 \\u0000 \x7f '\"\n",
        "nested": json.loads("[" * 190 + "]" * 190),
        "empty": [{}, [], "", None, False, 0],
        "": {"": ""},
    }
    heard: list[Any] = []

    @bench.worker.handler("m")
    async def m(args: dict[str, Any], ctx: Context) -> None:
        heard.append(args)

    rpc = bench.connect()
    await send(rpc, QUEUE, [NewMessage({"method": "m", "args": said})])
    await rpc.aclose()
    await bench.run()
    assert heard == [said]
    assert {type(heard[0][name]) for name in ("edge", "large", "longest")} == {int}


async def test_every_other_is_refused_by_path_before_anything_is_sent(bench: Bench) -> None:
    refused: list[tuple[Any, str]] = [
        ({"a": "\x00"}, r"\$\.a: contains NUL"),
        ({"a": "\ud800"}, r"\$\.a: contains a lone surrogate"),
        ({"a": float("1e400")}, r"\$\.a: inf is not JSON"),
        ({"a": "x" * 2**21}, r"\$: the message has 2097161 bytes, the limit is 1048576"),
        ({"a": json.loads("[" * 300 + "]" * 300)}, "nested deeper than 200"),
    ]
    rpc = bench.connect()
    for body, said in refused:
        with pytest.raises(InvalidInput, match=f"^message 1: .*{said}"):
            await send(rpc, QUEUE, [NewMessage({}), NewMessage(body)])
    await rpc.aclose()
    assert bench.value(f"select count(*) from pgmq.q_{QUEUE}") == 0


async def test_what_plain_sql_put_in_is_done_or_dead_by_name_and_keeps_no_neighbour(
    bench: Bench,
) -> None:
    sizes: list[int] = []

    @bench.worker.handler("m")
    async def m(args: dict[str, Any], ctx: Context) -> None:
        sizes.append(len(args.get("text", "")))

    large = bench.put({"method": "m", "args": {"text": "x" * 2**21}})
    number = bench.put('{"method": "m", "args": {"n": 1e5000}}')
    deep = bench.put(DEEP)
    deep_args = bench.put(f'{{"method": "m", "args": {{"a": {DEEP}}}}}')
    others = [bench.put(body) for body in ("null", "42", '"text"', "[]", "{}")]
    good = bench.put({"method": "m"})
    assert (await bench.run()).reason == "idle"
    assert [bench.where(msg_id) for msg_id in (large, number, good)] == [["archive"]] * 3
    assert [bench.where(msg_id) for msg_id in (deep, deep_args, *others)] == [["dead"]] * 7
    assert sorted(sizes) == [0, 0, 2**21]
    reasons = bench.connection.execute("select reason from fairlease.dead_letters order by msg_id")
    assert [reason.split(":")[0].split(" levels")[0] for (reason,) in reasons] == [
        *["nested deeper than 400"] * 2,
        *["not an object"] * 4,
        "no method",
    ]


async def test_a_row_that_is_odd_in_any_column_is_a_message_like_another(bench: Bench) -> None:
    heard: list[Any] = []

    @bench.worker.handler("m")
    async def m(args: dict[str, Any], ctx: Context) -> None:
        heard.append(ctx.headers)

    odd = [
        "headers = '[1]'",
        "headers = '\"text\"'",
        "headers = '5'",
        "headers = 'null'",
        f"headers = '{{\"x-org\": {DEEP}}}'",
        'headers = \'{"traceparent": 7, "x-org": [1]}\'',
        "enqueued_at = 'infinity'",
        "enqueued_at = '20000-01-01'",
        "enqueued_at = '0044-03-15 BC'",
        "read_ct = 2147483000",
    ]
    ids = [bench.put({"method": "m", "org": str(n)}) for n in range(len(odd))]
    for msg_id, change in zip(ids, odd, strict=True):
        bench.connection.execute(
            f"update pgmq.q_{QUEUE} set {change} where msg_id = %s".encode(), [msg_id]
        )
    assert (await bench.run()).reason == "idle"
    places = {change: bench.where(msg_id) for msg_id, change in zip(ids, odd, strict=True)}
    assert places == {change: ["archive"] for change in odd}
    assert all(isinstance(headers, dict) for headers in heard)


def test_an_operator_sees_any_payload(
    connection: psycopg.Connection, database: str, cli: Cli
) -> None:
    """Also one that Python can just read, and then not write."""
    bodies = [DEEP, f'{{"a": {DEEP}}}', '{"n": 1' + "0" * 5_000 + "}", '"' + "[" * 1_000 + '"']
    bodies += [f"{'[' * levels}{']' * levels}" for levels in (190, 940, 970, 990)]
    connection.execute("select fairlease.attach_queue(%s)", [QUEUE])
    for letter, body in enumerate(bodies, 1):
        connection.execute(
            "insert into fairlease.dead_letters (queue, org, msg_id, message, headers, "
            "enqueued_at, read_ct, attempts, reason, died_at) "
            "values (%s, 'a', %s, %s::jsonb, jsonb_build_object('h', %s::jsonb), "
            "now(), 1, 1, 'r', now())",
            [QUEUE, letter, body, body],
        )
        answer = cli("dlq", "show", letter, "--payload", url=database)
        assert (answer.returncode, answer.stderr) == (0, "")
        assert body[:180].strip('"') in answer.stdout
        answer = cli("dlq", "show", letter, "--payload", "--json", url=database)
        shown = json.loads(answer.stdout)["message"]
        assert shown == body or shown == json.loads(body)
    assert cli("message", "show", QUEUE, 1, "--payload", url=database).returncode == 0
    assert cli("dlq", "list", url=database).returncode == 0
    assert cli("dlq", "replay", "--all", "--yes", url=database).returncode == 0
    same = f"select bool_and(message = any (%s::jsonb[])), count(*) from pgmq.q_{QUEUE}"
    assert connection.execute(same, [bodies]).fetchone() == (True, len(bodies))


def test_the_command_that_sends_refuses_what_it_cannot_read_in_one_line(
    connection: psycopg.Connection, database: str, cli: Cli
) -> None:
    connection.execute("select fairlease.attach_queue(%s)", [QUEUE])
    for text in (
        DEEP,
        "[" * 300 + "]" * 300,
        "NaN",
        "1e400",
        '"\\ud800"',
        '"\\u0000"',
        "{",
        "9" * 5_000,
    ):
        answer = cli("send", QUEUE, text, url=database)
        assert (answer.returncode, answer.stderr.count("\n")) == (2, 1), answer.stderr[-300:]
    assert connection.execute(f"select count(*) from pgmq.q_{QUEUE}").fetchone() == (0,)
