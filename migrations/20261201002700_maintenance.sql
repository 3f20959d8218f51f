-- What time leaves behind: each step bounded, skipping what is busy, to be called again and again.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

create or replace function fairlease.clear_lapsed_slots()
returns int
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_now timestamptz := fairlease.now_();
  v_seat int;
  v_cleared int := 0;
begin
  for v_seat in
    select s.seat from fairlease.seats s where s.expires_at <= v_now
    order by s.seat for update skip locked
  loop
    perform fairlease.vacate(v_seat, 'lapsed', v_now);
    v_cleared := v_cleared + 1;
  end loop;
  return v_cleared;
end;
$$;

-- State of messages that left their queue by another way than ours.
create or replace function fairlease.prune_message_state(p_queue fairlease.queues, p_limit int)
returns int
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_pruned int;
begin
  execute format($sql$
    delete from fairlease.message_state s
    using (
      select o.queue, o.msg_id from fairlease.message_state o
      where o.queue = $1 and not exists (
        select from pgmq.%I m where m.msg_id = o.msg_id and m.enqueued_at = o.enqueued_at
      )
      limit $2 for update skip locked
    ) o
    where s.queue = o.queue and s.msg_id = o.msg_id
  $sql$, p_queue.table_name) using p_queue.queue, p_limit;
  get diagnostics v_pruned = row_count;
  return v_pruned;
end;
$$;

create or replace function fairlease.prune_archive(p_queue fairlease.queues, p_limit int)
returns int
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_pruned int;
begin
  if p_queue.retention is null or to_regclass(format('pgmq.%I', p_queue.archive_name)) is null then
    return 0;
  end if;
  -- An archive may have been partitioned since: places then repeat, hence the age once more.
  execute format($sql$
    delete from pgmq.%1$I a
    where a.archived_at < $1 and a.ctid = any (array(
      select o.ctid from pgmq.%1$I o where o.archived_at < $1
      order by o.archived_at limit $2 for update skip locked
    ))
  $sql$, p_queue.archive_name) using fairlease.now_() - p_queue.retention, p_limit;
  get diagnostics v_pruned = row_count;
  return v_pruned;
end;
$$;

create or replace function fairlease.prune_dead_letters(p_queue fairlease.queues, p_limit int)
returns int
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_pruned int;
begin
  delete from fairlease.dead_letters d
  where d.id = any (array(
    select o.id from fairlease.dead_letters o
    where o.queue = p_queue.queue and o.died_at < fairlease.now_() - p_queue.retention
    order by o.died_at limit p_limit for update skip locked
  ));
  get diagnostics v_pruned = row_count;
  return v_pruned;
end;
$$;

create or replace function fairlease.prune_inbox(p_limit int)
returns int
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_now timestamptz := fairlease.now_();
  v_pruned int;
begin
  delete from fairlease.inbox i
  using (
    select o.queue, o.key
    from fairlease.inbox o left join fairlease.queues q on q.queue = o.queue
    where o.taken_at < v_now - coalesce(q.retention, interval '30 days')
    order by o.taken_at limit p_limit for update of o skip locked
  ) o
  where i.queue = o.queue and i.key = o.key;
  get diagnostics v_pruned = row_count;
  return v_pruned;
end;
$$;

-- Leases that ended long ago, circuits that have been quiet for longer than they are doubled, and
-- keys of effects.
create or replace function fairlease.prune_history(p_limit int)
returns int
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_now timestamptz := fairlease.now_();
  v_leases int;
  v_circuits int;
begin
  delete from fairlease.lease_log l
  where l.id = any (array(
    select o.id from fairlease.lease_log o where o.ended_at < v_now - interval '30 days'
    order by o.ended_at limit p_limit for update skip locked
  ));
  get diagnostics v_leases = row_count;
  delete from fairlease.circuits c
  where c.org = any (array(
    select o.org from fairlease.circuits o
    where o.open_until is null
      and coalesce(greatest(o.opened_at, o.closed_at), '-infinity') < v_now - interval '1 day'
    limit p_limit for update skip locked
  ));
  get diagnostics v_circuits = row_count;
  return v_leases + v_circuits + fairlease.prune_inbox(p_limit);
end;
$$;

-- One bounded round over everything; returns how many rows each step removed. Where a step reached
-- `step_limit` there is more to do.
create or replace function fairlease.maintain(step_limit int default 1000)
returns jsonb
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_limit int := least(greatest(coalesce(step_limit, 1), 1), 10000);
  v_queue fairlease.queues;
  v_done jsonb := jsonb_build_object(
    'lapsed_slots', fairlease.clear_lapsed_slots(), 'history', fairlease.prune_history(v_limit)
  );
begin
  for v_queue in select * from fairlease.queues q order by q.id loop
    continue when to_regclass(format('pgmq.%I', v_queue.table_name)) is null;
    v_done := v_done || jsonb_build_object('queue:' || v_queue.queue, jsonb_build_object(
      'message_state', fairlease.prune_message_state(v_queue, v_limit),
      'archive', fairlease.prune_archive(v_queue, v_limit),
      'dead_letters', fairlease.prune_dead_letters(v_queue, v_limit)
    ));
  end loop;
  return v_done;
end;
$$;

revoke all on function
  fairlease.clear_lapsed_slots(),
  fairlease.prune_message_state(fairlease.queues, int),
  fairlease.prune_archive(fairlease.queues, int),
  fairlease.prune_dead_letters(fairlease.queues, int),
  fairlease.prune_inbox(int),
  fairlease.prune_history(int),
  fairlease.maintain(int)
from public;

notify pgrst, 'reload schema';
