"""`fairlease cron sql` on a real pg_cron: what it schedules, refuses, keeps, and that it pokes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from conftest import fast_folder
from stack.hosts import NAP, SECRET, eventually, running_host, write_task
from stack.pg_cron import MISSING, VAULT_SECRET, PokeSender, is_installed, postgres_with_cron
from unit.cron.folders import write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cli import Cli
    from fairlease.local.postgres import LocalPostgres

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_installed(), reason=MISSING),
    pytest.mark.filterwarnings("ignore:invalid escape sequence"),
]
# A tick comes at the full minute.
TICK_SECONDS = 90.0


@pytest.fixture(scope="module")
def server() -> Iterator[LocalPostgres]:
    with postgres_with_cron(fast_folder()) as running:
        yield running


@pytest.fixture
def session(server: LocalPostgres) -> Iterator[psycopg.Connection]:
    """As the role postgres, with the secret in Vault and no job."""
    with psycopg.connect(server.url(), autocommit=True) as connected:
        connected.execute("delete from vault.secrets")
        connected.execute("select vault.create_secret(%s, %s)", (SECRET, VAULT_SECRET))
        connected.execute("select cron.unschedule(jobid) from cron.job")
        yield connected
        connected.execute("select cron.unschedule(jobid) from cron.job")


def sql(cli: Cli, *options: object, url: str = "http://127.0.0.1:1") -> str:
    answer = cli("cron", "sql", "--url", url, *options)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def jobs(session: psycopg.Connection) -> dict[str, tuple[str, str]]:
    rows = session.execute("select jobname, schedule, command from cron.job")
    return {name: (schedule, command) for name, schedule, command in rows}


def test_it_schedules_every_function_once_however_often_it_runs(
    cli: Cli, session: psycopg.Connection
) -> None:
    for _ in range(2):
        session.execute(sql(cli))
    told = json.loads(sql(cli, "--json"))["jobs"]
    assert jobs(session) == {job["name"]: (job["schedule"], job["command"]) for job in told}
    assert len(told) == 3


def test_a_folder_that_is_gone_is_unscheduled_and_what_is_not_ours_stays(
    cli: Cli, session: psycopg.Connection, tmp_path: Path
) -> None:
    session.execute("select cron.schedule('fairleases', '* * * * *', 'select 1')")
    session.execute(sql(cli, "--label", "other"))
    others = jobs(session)
    session.execute(sql(cli))
    write(tmp_path, "invites")
    session.execute(sql(cli, "--functions", tmp_path))
    assert jobs(session).keys() - others.keys() == {"fairlease/invites"}
    session.execute(sql(cli, "--remove"))
    assert jobs(session) == others


def test_jobs_of_another_role_stay(
    cli: Cli, server: LocalPostgres, session: psycopg.Connection
) -> None:
    session.execute(sql(cli))
    with psycopg.connect(server.url(user="supabase_admin"), autocommit=True) as admin:
        admin.execute(sql(cli, "--remove"))
    assert len(jobs(session)) == 3


@pytest.mark.parametrize(
    "schedule",
    [
        *("* * * * *", "*/10 * * * *", "0,30 8-18 * * 1-5", "5 4 1 */2 *", "0 0 * jan sun"),
        *("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "0 0 * * 7"),
    ],
)
def test_every_form_of_schedule_is_one_for_pg_cron(
    cli: Cli, session: psycopg.Connection, tmp_path: Path, schedule: str
) -> None:
    write(tmp_path, "invites", schedule=schedule)
    session.execute(sql(cli, "--functions", tmp_path))
    assert jobs(session)["fairlease/invites"][0] == schedule


def test_without_the_secret_nothing_is_scheduled_and_it_says_which(
    cli: Cli, session: psycopg.Connection
) -> None:
    session.execute("delete from vault.secrets")
    with pytest.raises(
        psycopg.errors.RaiseException, match=f"no secret of the name {VAULT_SECRET}"
    ):
        session.execute(sql(cli))
    session.execute("rollback")
    assert jobs(session) == {}


def test_a_list_of_secrets_in_vault_is_refused_since_it_would_open_nothing(
    cli: Cli, session: psycopg.Connection
) -> None:
    session.execute("update vault.secrets set secret = 'new,old'")
    with pytest.raises(psycopg.errors.RaiseException, match="has a comma"):
        session.execute(sql(cli))
    session.execute("rollback")
    assert jobs(session) == {}


@pytest.mark.parametrize(
    "missing", ["schema net", "view vault.decrypted_secrets", "extension pg_cron"]
)
def test_what_is_not_installed_is_named(
    cli: Cli, server: LocalPostgres, session: psycopg.Connection, missing: str
) -> None:
    name = {"s": "pg_net", "v": "Vault", "e": "pg_cron"}[missing[0]]
    with psycopg.connect(server.url(user="supabase_admin")) as admin:
        admin.execute(f"drop {missing} cascade")
        statements = sql(cli).removeprefix("begin;")
        with pytest.raises(psycopg.errors.RaiseException, match=f"{name} is not installed"):
            admin.execute(statements)
        admin.rollback()


@pytest.mark.parametrize(
    "name",
    ["it's", "a\\b", "$poke$; drop table t; --", "x' or true --", "ключ 🔑", "%", "{secret}"],
)
def test_a_secret_of_any_name_is_found(cli: Cli, session: psycopg.Connection, name: str) -> None:
    session.execute("select vault.create_secret('hush', %s)", (name,))
    session.execute(sql(cli, "--vault-secret", name))
    _, command = jobs(session)["fairlease/github_worker"]
    session.execute(command.encode())
    queued = session.execute("delete from net.http_request_queue returning headers").fetchall()
    assert [h["x-edge-function-secret"] for (h,) in queued] == ["hush", "hush"]


def outcomes(session: psycopg.Connection) -> set[str]:
    return {status for (status,) in session.execute("select status from cron.job_run_details")}


def answers(session: psycopg.Connection) -> list[dict[str, Any]]:
    rows = session.execute("select status_code, content from net._http_response order by id")
    return [{"code": code, **json.loads(content or "{}")} for code, content in rows]


def test_a_tick_pokes_a_real_host_as_often_as_function_toml_says(
    cli: Cli, server: LocalPostgres, session: psycopg.Connection, tmp_path: Path
) -> None:
    write_task(tmp_path, "nap", NAP)
    (tmp_path / "nap" / "function.toml").write_text('name = "nap"\nkind = "task"\npokes = 2\n')
    with running_host(tmp_path) as host, PokeSender(server.url()):
        session.execute(sql(cli, "--functions", tmp_path, url=host.url))
        assert eventually(lambda: len(answers(session)) == 2, TICK_SECONDS)
        assert outcomes(session) == {"succeeded"}
        assert host.line().startswith("started ")
    told = answers(session)
    assert [a["code"] for a in told] == [202, 202]
    assert [a["status"] for a in told] == ["accepted", "already_running"]
    assert told[0]["run_id"] == told[1]["run_id"]
