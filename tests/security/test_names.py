"""Names that a stranger chose: of queues, of orgs, of secrets in a schedule. Data, never code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from fairlease.cron.jobs import PokeJob
from fairlease.cron.pg_cron import remove_sql, schedule_sql
from security.rpc_calls import CALLS

if TYPE_CHECKING:
    from cli import Cli

DROP = "'; drop schema fairlease cascade; --"
QUEUES = [
    *(DROP, f"jobs{DROP}", 'jobs"; drop table pgmq.q_jobs; --', "jobs'", 'jobs"', "jobs;", "$$"),
    *("../jobs", "jobs/../jobs", "pgmq.q_jobs", "q_jobs; select 1", "jobs\n", "jobs\x1b[2J"),
    *("j\u00f6bs", "jobs\u202e", "\U0001f4a3", "", " ", "jobs ", "JOBS--", "%s", "{q}", "{id}"),
    *("x" * 48, "x" * 64, "\u00fc" * 40, "x" * 100_000),
]
# What pgmq itself does with a name that is none of ours to check.
OF_PGMQ = ("send", "send_batch", "read", "pop", "archive", "delete")

EVERYTHING = """
select 'relation', c.oid::regclass::text from pg_class c
where c.relnamespace in ('pgmq'::regnamespace, 'fairlease'::regnamespace)
union all select 'function', p.oid::regprocedure::text from pg_proc p
where p.pronamespace in ('fairlease'::regnamespace, 'pgmq_public'::regnamespace)
union all select 'queue', queue from fairlease.queues
union all select 'of pgmq', queue_name from pgmq.meta
order by 1, 2
"""


def everything(session: psycopg.Connection) -> list[Any]:
    return session.execute(EVERYTHING).fetchall()


@pytest.mark.parametrize("function", [name for name in CALLS if "queue_name" in CALLS[name]])
def test_a_hostile_queue_name_is_refused_by_every_function_and_leaves_no_trace(
    connection: psycopg.Connection, queue: str, function: str
) -> None:
    before = everything(connection)
    arguments = {
        name: Jsonb(value) if isinstance(value, dict | list) else value
        for name, value in CALLS[function].items()
    }
    if function == "send_batch":
        arguments["messages"] = [Jsonb({})]
    named = ", ".join(f"{name} => %({name})s" for name in arguments)
    for hostile in QUEUES:
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(
                f"select pgmq_public.{function}({named})".encode(),
                {**arguments, "queue_name": hostile},
            )
        assert len(str(refused.value).splitlines()[0]) < 400
        if function not in OF_PGMQ:
            assert refused.value.sqlstate == "P0001"
            assert str(refused.value).startswith("queue_name")
    assert everything(connection) == before


def test_a_hostile_queue_name_cannot_be_attached(
    connection: psycopg.Connection, queue: str
) -> None:
    before = everything(connection)
    for hostile in QUEUES:
        with pytest.raises(psycopg.errors.RaiseException, match=r"^queue_name\b"):
            connection.execute("select fairlease.attach_queue(%s)", [hostile])
    assert everything(connection) == before


@pytest.mark.parametrize("hostile", [DROP, "../jobs", "jobs\x1b[2J", "x" * 64])
@pytest.mark.parametrize("command", ["create", "attach", "pause", "purge"])
def test_a_hostile_queue_name_is_one_line_to_a_command(
    connection: psycopg.Connection, cli: Cli, database: str, command: str, hostile: str
) -> None:
    before = everything(connection)
    answer = cli("queue", command, "--", hostile, url=database)
    assert answer.returncode != 0
    assert answer.stdout == ""
    assert "\x1b" not in answer.stderr
    assert everything(connection) == before


ORGS = [DROP, "a' or true --", 'a"b', "../a", "%s{org}$1", "a\nb", "\x1b[2Ja", "\u202ea", "é" * 300]


def test_a_hostile_org_is_a_text_like_any_other(connection: psycopg.Connection, queue: str) -> None:
    before = everything(connection)
    messages = [{"message": {}, "org": org} for org in ORGS]
    connection.execute("select pgmq_public.send_messages('jobs', %s)", [Jsonb(messages)])
    served = {
        connection.execute(
            "select org from pgmq_public.claim_org_slot_and_read('jobs', 60, 1, %s, 60, 1, 99)",
            [f"h{n}"],
        ).fetchone()
        for n in range(len(ORGS))
    }
    assert len(served) == len(ORGS)
    assert {org for (org,) in served if len(org) < 100} == {o.lower() for o in ORGS if len(o) < 100}
    assert everything(connection) == before


# What Supabase has, as far as the schedule touches it: a job is kept, a request is noted.
STAND_INS = """
create schema cron; create schema net; create schema vault;
create table cron.job (
  jobid bigint generated always as identity, jobname text unique, schedule text, command text,
  username text default current_user
);
create function cron.schedule(job_name text, schedule text, command text) returns bigint
  language sql as $$ insert into cron.job (jobname, schedule, command)
  values ($1, $2, $3) returning jobid $$;
create function cron.unschedule(job_id bigint) returns boolean
  language sql as $$ delete from cron.job where jobid = $1 returning true $$;
create table net.asked (url text, headers jsonb);
create function net.http_post(url text, headers jsonb, body jsonb, timeout_milliseconds int)
  returns bigint language sql as $$ insert into net.asked values ($1, $2) returning 1::bigint $$;
create table vault.decrypted_secrets (name text, decrypted_secret text);
"""
SECRET_NAMES = [
    *(DROP, "a'b", "a\\", "\\'", "$check$", "$poke$; drop schema fairlease cascade; $poke$"),
    *("\u202e\U0001f4a3", "a\nb", "%s", "' || (select 'x') || '", "*/ -- '"),
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_schedule_with_a_hostile_name_is_that_schedule_and_nothing_else(
    connection: psycopg.Connection, name: str
) -> None:
    connection.execute(STAND_INS)
    before = everything(connection)
    connection.execute("insert into vault.decrypted_secrets values (%s, 'hush')", [name])
    url = "https://h/a'b$poke$\\"
    text = schedule_sql([PokeJob("invites", "* * * * *", 2)], url, name, "label")
    connection.execute(text.encode())
    [(command,)] = connection.execute("select command from cron.job").fetchall()
    assert "hush" not in text + command
    connection.execute(command.encode())
    asked = connection.execute(
        "select url, headers ->> 'x-edge-function-secret' from net.asked"
    ).fetchall()
    assert asked == [(f"{url}/functions/v1/invites", "hush")] * 2
    connection.execute(remove_sql("label").encode())
    assert connection.execute("select count(*) from cron.job").fetchone() == (0,)
    assert everything(connection) == before
