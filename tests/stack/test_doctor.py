"""`fairlease doctor` against real databases with one thing wrong each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli import Cli

DRAIN = 'name = "adder"\nkind = "drain"\nqueues = ["sums"]\n'


@pytest.fixture
def migrated(database: str) -> str:
    """As `fairlease migrate` leaves it, with one queue attached."""
    change(database, "select fairlease.attach_queue('sums')")
    return database


@pytest.fixture
def doctor(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Ask the doctor about a database; the answer's checks by area, and the exit code."""
    monkeypatch.setenv("EDGE_FUNCTION_SECRET", "s3cret")
    folder = tmp_path / "adder"
    folder.mkdir()
    (folder / "function.toml").write_text(DRAIN)
    for variable in ("SUPABASE_URL", "SUPABASE_SECRET_KEY", "SUPABASE_SERVICE_ROLE_KEY"):
        monkeypatch.delenv(variable, raising=False)

    def ask(url: str) -> tuple[dict[str, Any], int]:
        answer = cli("doctor", "--json", "--functions", str(tmp_path), url=url)
        report = json.loads(answer.stdout)
        assert report["ok"] == (answer.returncode == 0)
        return {**report, "area": {c["area"]: c for c in report["checks"]}}, answer.returncode

    return ask


def change(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_a_healthy_setup_has_no_finding(doctor: Callable[..., Any], migrated: str) -> None:
    report, code = doctor(migrated)
    areas = "knobs functions_folder secrets connection clock pgmq schema functions grants limits"
    areas += " foreign_functions queue_tables queues exposure"
    assert {c["area"]: c["state"] for c in report["checks"]} == dict.fromkeys(areas.split(), "ok")
    assert code == 0
    assert abs(report["facts"]["clock"]["skew_seconds"]) < 5
    assert report["knobs"]["drain_concurrency"] == 4


WRONG = [
    ("functions problem", "drop function fairlease.now_()", "fairlease.now_"),
    ("functions problem", "drop function pgmq_public.settle_and_claim", "settle_and_claim"),
    (
        "functions problem",
        "create function pgmq_public.renew_org_slot(x int) returns int language sql as 'select 1'",
        "PGRST203",
    ),
    (
        "grants problem",
        "grant execute on function pgmq_public.release_org_slot to anon",
        "release_org_slot(text,text) by anon",
    ),
    (
        "grants problem",
        "revoke execute on function pgmq_public.release_org_slot from service_role",
        "service_role may not execute release_org_slot",
    ),
    ("grants problem", "grant usage on schema fairlease to authenticated", "authenticated"),
    (
        "foreign_functions warning",
        "create function pgmq_public.peek() returns int language sql as 'select 1'",
        "pgmq_public.peek()",
    ),
    (
        "queue_tables warning",
        "grant usage on schema pgmq to anon; grant select on pgmq.q_sums to anon",
        "pgmq.q_sums by anon",
    ),
    (
        "limits warning",
        "insert into fairlease.org_limits (org, max_per_org) values ('acme', 5)",
        "20 in flight, above the ceiling of 16",
    ),
    ("queues problem", "delete from fairlease.queues", "sums"),
    ("queues warning", "drop table pgmq.a_sums", "the archive of sums is missing"),
    (
        "schema problem",
        "delete from fairlease.schema_migrations where name = 'privileges'",
        "1 migrations are missing",
    ),
    (
        "schema warning",
        "insert into fairlease.schema_migrations values ('29991231000000', 'later', 'x')",
        "ahead",
    ),
]


@pytest.mark.parametrize(("found", "statement", "said"), WRONG, ids=[w[2] for w in WRONG])
def test_each_thing_that_is_wrong_is_found_where_it_is(
    doctor: Callable[..., Any], migrated: str, found: str, statement: str, said: str
) -> None:
    area, state = found.split()
    change(migrated, statement)
    report, code = doctor(migrated)
    assert report["area"][area]["state"] == state
    assert said in report["area"][area]["says"]
    assert report["area"][area]["remedy"]
    assert code == (1 if state == "problem" else 0)


def test_a_database_without_our_schema_is_told_to_migrate(
    doctor: Callable[..., Any], pgmq_database: str
) -> None:
    report, code = doctor(pgmq_database)
    assert (report["area"]["schema"]["state"], code) == ("problem", 1)
    assert "fairlease migrate" in report["area"]["schema"]["remedy"]


def test_a_database_that_does_not_answer_is_a_finding_without_its_password(
    doctor: Callable[..., Any],
) -> None:
    report, code = doctor("postgresql://postgres:hush@127.0.0.1:1/postgres")
    assert (report["area"]["connection"]["state"], code) == ("problem", 1)
    assert "hush" not in json.dumps(report)


def test_the_knobs_and_their_issues_are_shown(
    doctor: Callable[..., Any], migrated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEASE_DRAIN_CONCURRENCY", "many")
    report, code = doctor(migrated)
    assert (report["knobs"]["drain_concurrency"], code) == (4, 0)
    assert [issue["kind"] for issue in report["knob_issues"]] == ["unparseable"]


def test_the_text_names_each_area_and_its_remedy(
    cli: Cli, pgmq_database: str, tmp_path: Path
) -> None:
    answer = cli("doctor", "--functions", str(tmp_path), url=pgmq_database)
    assert answer.returncode == 1
    assert "problem  schema" in answer.stdout
    assert "-> run `fairlease migrate`" in answer.stdout


def test_a_secret_that_serve_needs_and_an_alert_address_that_is_none_are_said(
    doctor: Callable[..., Any], migrated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EDGE_FUNCTION_SECRET")
    report, code = doctor(migrated)
    assert (report["area"]["secrets"]["state"], code) == ("warning", 0)
    monkeypatch.setenv("SENTRY_DSN", "nowhere")
    report, code = doctor(migrated)
    assert (report["area"]["alerts"]["state"], code) == ("problem", 1)
