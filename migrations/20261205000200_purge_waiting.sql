-- Removing a backlog for good: what waits, and never what runs.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- The highest id that was given out: what is sent from now on has a higher one.
create or replace function fairlease.last_id(p_queue fairlease.queues)
returns bigint
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_last bigint;
begin
  execute format('select s.last_value from %s s',
    pg_get_serial_sequence(format('pgmq.%I', p_queue.table_name), 'msg_id')) into v_last;
  return v_last;
end;
$$;

-- One chunk of messages with ids in (p_after, p_until], in the order of their ids: those that wait
-- are deleted, those that run are left. Returns {"removed", "running", "last_id"}; `last_id` null:
-- there is none left that is not locked. Whether a message runs is decided under its lock, by a
-- later statement than the one that locks.
create or replace function fairlease.purge_waiting(
  p_queue fairlease.queues, p_after bigint, p_until bigint, p_limit int
)
returns jsonb
language plpgsql volatile
set search_path = '', pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_ids bigint[];
  v_removed bigint[];
begin
  execute format($sql$
    select array_agg(o.msg_id) from (
      select m.msg_id from pgmq.%I m where m.msg_id > $1 and m.msg_id <= $2
      order by m.msg_id limit $3 for update skip locked
    ) o
  $sql$, p_queue.table_name) into v_ids using p_after, p_until, p_limit;
  execute format($sql$
    with gone as (
      delete from pgmq.%I m
      where m.msg_id = any ($1) and (m.vt <= $2 or m.read_ct = 0 or m.read_ct = (
        select s.closed_read_ct from fairlease.message_state s
        where s.queue = $3 and s.msg_id = m.msg_id and s.enqueued_at = m.enqueued_at
      ))
      returning m.msg_id
    ), forgotten as (
      delete from fairlease.message_state s
      where s.queue = $3 and s.msg_id = any (array(select g.msg_id from gone g))
    )
    select array_agg(g.msg_id) from gone g
  $sql$, p_queue.table_name) into v_removed using v_ids, fairlease.now_(), p_queue.queue;
  return jsonb_build_object(
    'removed', coalesce(cardinality(v_removed), 0),
    'running', coalesce(cardinality(v_ids), 0) - coalesce(cardinality(v_removed), 0),
    'last_id', v_ids[cardinality(v_ids)]
  );
end;
$$;

revoke all on function
  fairlease.last_id(fairlease.queues),
  fairlease.purge_waiting(fairlease.queues, bigint, bigint, int)
from public;

notify pgrst, 'reload schema';
