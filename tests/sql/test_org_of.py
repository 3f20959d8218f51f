from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    import psycopg

    from sql.conftest import Hire, Send

CASES = json.loads(Path(__file__).with_name("org_cases.json").read_text(encoding="utf-8"))


def org_of(session: psycopg.Connection, message: Any, headers: Any) -> str:
    row = session.execute(
        "select fairlease.org_of(%s, %s)", (Jsonb(message), Jsonb(headers))
    ).fetchone()
    assert row is not None
    return row[0]


def fold(text: str) -> str:
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def test_every_case_of_the_table_gives_its_org(connection: psycopg.Connection) -> None:
    wrong = [
        (case, got)
        for case in CASES["cases"]
        if (got := org_of(connection, case["message"], case["headers"])) != case["org"]
    ]
    assert wrong == []


def test_a_long_org_becomes_its_head_and_a_digest_of_all_of_it(
    connection: psycopg.Connection,
) -> None:
    for case in CASES["long"]:
        folded = fold(case["unit"] * case["times"])
        if len(folded.encode()) <= 200:
            expected = folded
        else:
            digest = hashlib.md5(folded.encode(), usedforsecurity=False).hexdigest()
            expected = folded[: case["kept"]] + digest
        got = org_of(connection, {"org": case["unit"] * case["times"]}, None)
        assert got == expected
        assert len(got.encode()) <= 200


def test_long_orgs_that_differ_at_the_end_stay_two(connection: psycopg.Connection) -> None:
    one, two = ("x" * 5000 + end for end in "ab")
    assert org_of(connection, {"org": one}, None) != org_of(connection, {"org": two}, None)


def test_folding_twice_is_folding_once(connection: psycopg.Connection) -> None:
    for text in ["Acme", "É" * 300, " ", "(unresolved)", "X" * 201]:
        once = connection.execute("select fairlease.fold_org(%s)", (text,)).fetchone()
        assert once is not None
        assert connection.execute("select fairlease.fold_org(%s)", once).fetchone() == once


def test_sql_null_means_no_org(connection: psycopg.Connection) -> None:
    assert connection.execute("select fairlease.org_of(null, null)").fetchone() == ("(unresolved)",)


def test_the_databases_locale_has_no_say(connection: psycopg.Connection) -> None:
    row = connection.execute(
        "select provolatile, proparallel from pg_proc where proname = 'org_of'"
    ).fetchone()
    assert row == ("i", "s")
    for collation in connection.execute(
        "select quote_ident(collname) from pg_collation where collname in "
        "('tr-x-icu', 'az-x-icu', 'C', 'ucs_basic')"
    ).fetchall():
        folded = connection.execute(
            f"select fairlease.org_of(jsonb_build_object('org', 'TITLE' collate {collation[0]}), "
            "null)"
        ).fetchone()
        assert folded == ("title",)


def test_a_sender_without_rights_on_the_schema_can_send_any_org(
    connection: psycopg.Connection, queue: str
) -> None:
    connection.execute("grant usage on schema pgmq to authenticated")
    connection.execute("grant select, insert on pgmq.q_jobs to authenticated")
    connection.execute("set role authenticated")
    connection.execute("select pgmq.send('jobs', %s)", (Jsonb({"org": "É" * 50_000}),))
    connection.execute("select pgmq.send('jobs', %s)", (Jsonb({"org": "Plain"}),))
    connection.execute("reset role")
    row = connection.execute("select count(*) from pgmq.q_jobs").fetchone()
    assert row == (2,)


def test_a_claim_returns_only_messages_of_the_org_it_names(hire: Hire, send: Send) -> None:
    send("b", "a", "B", "c", "b ")
    answer = hire().plain(n=10, pin_org="B")
    assert answer.org == "b"
    assert answer.ids == [1, 3]


def test_a_hard_org_name_is_claimed_pinned_and_settled_like_any(
    hire: Hire, send: Send, connection: psycopg.Connection
) -> None:
    names = [case["org"] for case in CASES["cases"]] + ["Ω" * 900, "a\\b", "%s", "$1", "null"]
    for name in names:
        send(name)
        answer = hire().claim(n=5, pin_org=name)
        assert len(answer.ids) == 1, name
        [delivery] = answer.deliveries
        outcome = {"id": delivery[0], "ct": delivery[1], "do": "done"}
        assert hire().settle_only(outcome) == ["applied"]
