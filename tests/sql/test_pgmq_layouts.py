"""Tables as older pgmq versions made them: without headers, without last_read_at, or upgraded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.types.json import Jsonb

from sql.worker import Worker, done, outcome

if TYPE_CHECKING:
    from sql.worker import MovableClock

# pgmq 1.4.4's tables, functions and row type.
LAYOUT_1_4_4 = """
create table pgmq.q_old (
  msg_id bigint primary key generated always as identity,
  read_ct int default 0 not null,
  enqueued_at timestamptz default now() not null,
  vt timestamptz not null,
  message jsonb
);
create table pgmq.a_old (
  msg_id bigint primary key,
  read_ct int default 0 not null,
  enqueued_at timestamptz default now() not null,
  archived_at timestamptz default now() not null,
  vt timestamptz not null,
  message jsonb
);
create index q_old_vt_idx on pgmq.q_old (vt asc);
insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values ('old', false, false);
do $$
declare newer regprocedure;
begin
  for newer in select oid from pg_proc where pronamespace = 'pgmq'::regnamespace
    and (proname in ('send', 'send_batch', '_send_batch', 'archive')
      or proname = 'set_vt' and proargtypes[1] = 'bigint[]'::regtype)
  loop
    execute format('drop function %s', newer);
  end loop;
end; $$;
drop type pgmq.message_record cascade;
create type pgmq.message_record as (
  msg_id bigint, read_ct integer, enqueued_at timestamptz, vt timestamptz, message jsonb
);
create function pgmq.read(queue_name text, vt integer, qty integer)
returns setof pgmq.message_record language plpgsql as $$
begin
  return query execute format(
    'with c as (select msg_id from pgmq.%1$I where vt <= clock_timestamp() order by msg_id limit $1
     for update skip locked) update pgmq.%1$I m set vt = clock_timestamp() + %2$L,
     read_ct = read_ct + 1 from c where m.msg_id = c.msg_id
     returning m.msg_id, m.read_ct, m.enqueued_at, m.vt, m.message',
    'q_' || queue_name, make_interval(secs => vt)) using qty;
end; $$;
create function pgmq.pop(queue_name text)
returns setof pgmq.message_record language plpgsql as $$
begin
  return query execute format(
    'with c as (select msg_id from pgmq.%1$I where vt <= now() order by msg_id limit 1 for update
     skip locked) delete from pgmq.%1$I where msg_id in (select msg_id from c)
     returning msg_id, read_ct, enqueued_at, vt, message', 'q_' || queue_name);
end; $$;
create function pgmq.send_batch(queue_name text, msgs jsonb[], delay integer default 0)
returns setof bigint language plpgsql as $$
begin
  return query execute format('insert into pgmq.%I (vt, message)
    select clock_timestamp() + %L, unnest($1) returning msg_id',
    'q_' || queue_name, make_interval(secs => delay)) using msgs;
end; $$;
create function pgmq.send(queue_name text, msg jsonb, delay integer default 0)
returns setof bigint language sql as $$
  select * from pgmq.send_batch(queue_name, array[msg], delay)
$$;
create function pgmq.archive(queue_name text, msg_id bigint) returns boolean
language plpgsql as $$
declare moved bigint;
begin
  execute format('with d as (delete from pgmq.%I where msg_id = $1
    returning msg_id, vt, read_ct, enqueued_at, message)
    insert into pgmq.%I (msg_id, vt, read_ct, enqueued_at, message) select * from d
    returning msg_id', 'q_' || queue_name, 'a_' || queue_name) using msg_id into moved;
  return moved is not null;
end; $$;
"""


@pytest.fixture
def old(connection: psycopg.Connection) -> Worker:
    connection.execute(LAYOUT_1_4_4)
    connection.execute("select fairlease.attach_queue('old')")
    return Worker(connection, "h1", "old")


def post(worker: Worker, *messages: dict) -> list[int]:
    said = [{"message": message} for message in messages]
    return worker.call("send_messages", queue_name="old", messages=Jsonb(said))["ids"]


def test_the_whole_life_of_a_message_on_the_oldest_layout(
    old: Worker, connection: psycopg.Connection
) -> None:
    old.call(
        "send_messages",
        queue_name="old",
        messages=Jsonb([{"message": {"n": 1}, "org": "Acme"}, {"message": {"n": 2, "org": "b"}}]),
    )
    answer = old.claim(pin_org="ACME")
    assert (answer.org, answer.ids) == ("acme", [1])
    assert answer.messages[0]["headers"] is None
    [first] = answer.deliveries
    assert old.heartbeat([first])["extended"] == [1]
    assert old.settle_only(outcome("retry", first, after_ms=0, error="e")) == ["applied"]
    [again] = old.claim(pin_org="acme").deliveries
    assert old.settle_only(done(first)) == ["lost"]
    assert old.settle_only(done(again)) == ["applied"]
    [other] = old.claim().deliveries
    assert old.settle_only(outcome("dead", other, reason="r")) == ["applied"]
    archived = connection.execute("select msg_id, read_ct, message from pgmq.a_old").fetchall()
    assert archived == [(1, 2, {"n": 1, "org": "Acme"})]
    buried = connection.execute("select org, headers, attempts from fairlease.dead_letters")
    assert buried.fetchall() == [("b", None, 1)]


def test_an_org_for_a_message_that_cannot_carry_it_is_refused(old: Worker) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match=r"messages\[0\]: org needs"):
        old.call("send_messages", queue_name="old", messages=Jsonb([{"message": [1], "org": "a"}]))


def test_a_replayed_letter_keeps_its_org(old: Worker, connection: psycopg.Connection) -> None:
    post(old, {"args": {"repository": "Own/r"}})
    [delivery] = old.claim().deliveries
    old.settle_only(outcome("dead", delivery))
    connection.execute(
        "select fairlease.replay_dead_letters(array(select id from fairlease.dead_letters))"
    )
    assert old.claim().org == "own"


def test_a_resolver_stamps_the_message_itself(old: Worker, connection: psycopg.Connection) -> None:
    connection.execute(
        "create function public.team(message jsonb) returns text language sql as $$ select 'T1' $$"
    )
    connection.execute("select fairlease.attach_queue('old', resolver => 'public.team(jsonb)')")
    post(old, {"n": 1}, {"n": 2, "org": "own"})
    rows = connection.execute("select message from pgmq.q_old order by msg_id").fetchall()
    assert rows == [({"n": 1, "org": "T1"},), ({"n": 2, "org": "own"},)]


def test_a_trip_is_told_by_how_long_the_handler_took(
    old: Worker, connection: psycopg.Connection, clock: MovableClock
) -> None:
    post(old, *[{"org": "a"}] * 3)
    first, second = old.claim(n=2).deliveries
    clock.advance(5)
    limit = {"until_ms": 10_000}
    old.settle_only(outcome("snooze", first, took_ms=5000, limit=limit))
    clock.advance(1)
    old.settle_only(outcome("snooze", second, took_ms=6000, limit=limit))
    assert connection.execute("select trips from fairlease.circuits").fetchone() == (1,)
    clock.advance(10)
    [probe] = old.claim().deliveries
    clock.advance(1)
    old.settle_only(outcome("snooze", probe, took_ms=1000, limit=limit))
    assert connection.execute("select trips from fairlease.circuits").fetchone() == (2,)


def test_attaching_after_an_upgrade_rebuilds_for_the_new_columns(
    old: Worker, connection: psycopg.Connection
) -> None:
    post(old, {"org": "a"})
    connection.execute(
        "alter table pgmq.q_old add headers jsonb, add last_read_at timestamptz; "
        "alter table pgmq.a_old add headers jsonb, add last_read_at timestamptz"
    )
    assert old.claim().ids == [1], "works as before until it is attached again"
    connection.execute("select fairlease.attach_queue('old')")
    old.call("send_messages", queue_name="old", messages=Jsonb([{"message": [1], "org": "B"}]))
    answer = old.claim()
    assert (answer.org, answer.messages[0]["headers"]) == ("b", {"x-org": "B"})
    old.settle_only(done(answer.deliveries[0]))
    row = connection.execute("select headers, last_read_at is not null from pgmq.a_old")
    assert row.fetchone() == ({"x-org": "B"}, True)
    indexes = connection.execute(
        "select pg_get_indexdef(indexrelid) from pg_index where indrelid = 'pgmq.q_old'::regclass "
        "and pg_get_indexdef(indexrelid) like '%%org_of%%'"
    ).fetchall()
    assert len(indexes) == 1
    assert "org_of(message, headers)" in indexes[0][0]


def test_the_wrappers_serve_the_oldest_functions(
    old: Worker, connection: psycopg.Connection
) -> None:
    connection.execute("select pgmq_public.send('old', '{\"n\": 1}')")
    connection.execute("select pgmq_public.send_batch('old', array['{\"n\": 2}'::jsonb], 0)")
    rows = connection.execute(
        "select msg_id, read_ct, message, headers from pgmq_public.read('old', 60, 1)"
    ).fetchall()
    assert rows == [(1, 1, {"n": 1}, None)]
    assert connection.execute("select msg_id from pgmq_public.pop('old')").fetchall() == [(2,)]
    assert connection.execute("select msg_id from pgmq_public.pop('old')").fetchall() == []
    assert connection.execute("select pgmq_public.archive('old', 1)").fetchone() == (True,)
    assert connection.execute("select pgmq_public.delete('old', 1)").fetchone() == (False,)


def test_an_upgrade_that_drops_pgmqs_row_type_takes_nothing_of_ours(
    connection: psycopg.Connection,
) -> None:
    count = "select count(*) from pg_proc where pronamespace in ('fairlease'::regnamespace, "
    count += "'pgmq_public'::regnamespace)"
    before = connection.execute(count).fetchone()
    connection.execute("drop type pgmq.message_record cascade")
    assert connection.execute(count).fetchone() == before


def test_a_column_added_in_the_middle_changes_nothing(
    connection: psycopg.Connection,
) -> None:
    connection.execute("select fairlease.attach_queue('jobs')")
    connection.execute(
        "alter table pgmq.q_jobs add priority int; alter table pgmq.a_jobs add x int"
    )
    worker = Worker(connection, "h1")
    connection.execute("select pgmq_public.send('jobs', '{\"org\": \"a\"}')")
    [delivery] = worker.claim().deliveries
    assert worker.settle_only(done(delivery)) == ["applied"]
