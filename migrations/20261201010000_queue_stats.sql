-- What monitors may know of queues, in numbers alone, and the round of upkeep that a worker may ask
-- for: neither needs a right on any table.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- Messages and letters are counted up to `p_most`, so that a look at a backlog of millions costs no
-- more than one at a large queue; ages and circuits come from the ends of indexes.
create or replace function fairlease.measure_queue(
  p_queue fairlease.queues, p_most int, p_now timestamptz
)
returns jsonb
language plpgsql stable
set search_path = '', pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_org text := format('fairlease.org_of(m.message, %s) collate "C"',
    case when p_queue.has_headers then 'm.headers' else 'null::jsonb' end);
  v_stats jsonb;
begin
  execute format($sql$
    select jsonb_build_object(
      'ready', (select count(*) from (
        select from pgmq.%1$I m where m.vt <= $1 limit $2
      ) r),
      'running', h.running,
      'delayed', h.hidden - h.running,
      'oldest_age_seconds', coalesce(extract(epoch from $1 - (
        select min(m.vt) from pgmq.%1$I m where m.vt <= $1
      )), 0),
      'circuits_open', (
        select count(*) from fairlease.circuits c
        where c.open_until > $1 and exists (
          select from pgmq.%1$I m where %2$s = c.org
        )
      )
    )
    from (
      select count(*) as hidden, count(*) filter (
        where m.read_ct > 0 and s.closed_read_ct is distinct from m.read_ct
      ) as running
      from (
        select m.msg_id, m.read_ct, m.enqueued_at from pgmq.%1$I m where m.vt > $1 limit $2
      ) m
      left join fairlease.message_state s
        on s.queue = $3 and s.msg_id = m.msg_id and s.enqueued_at = m.enqueued_at
    ) h
  $sql$, p_queue.table_name, v_org) into v_stats using p_now, p_most, p_queue.queue;
  return v_stats;
end;
$$;

create or replace function fairlease.measure_dead_letters(
  p_queue text, p_most int, p_now timestamptz
)
returns jsonb
language sql stable
set search_path = '', pg_temp
as $$
  select jsonb_build_object(
    'dead_letters', (select count(*) from (
      select from fairlease.dead_letters d where d.queue = p_queue limit p_most
    ) a),
    'dead_letters_new', (select count(*) from (
      select from fairlease.dead_letters d
      where d.queue = p_queue and d.died_at > p_now - interval '15 minutes' limit p_most
    ) n)
  )
$$;

-- [{"queue", "ready", "running", "delayed", "oldest_age_seconds", "circuits_open", "dead_letters",
-- "dead_letters_new"}], one for each attached queue that has its table. `running` is claimed and
-- not settled; `delayed` is neither that nor due; `circuits_open` are those of orgs with messages
-- in the queue; `dead_letters_new` came in the last 15 minutes.
create or replace function pgmq_public.queue_stats()
returns jsonb
language plpgsql volatile security definer
set search_path = '', pg_temp
set jit = off
as $$
declare
  v_most constant int := 100000;
  v_now timestamptz := fairlease.now_();
  v_queue fairlease.queues;
  v_stats jsonb := '[]';
begin
  for v_queue in select * from fairlease.queues q order by q.id loop
    continue when to_regclass(format('pgmq.%I', v_queue.table_name)) is null;
    v_stats := v_stats || jsonb_build_array(
      jsonb_build_object('queue', v_queue.queue)
        || fairlease.measure_queue(v_queue, v_most, v_now)
        || fairlease.measure_dead_letters(v_queue.queue, v_most, v_now)
    );
  end loop;
  return v_stats;
end;
$$;

-- `fairlease.maintain` for a worker: it removes what its policy says is over, and nothing else.
create or replace function pgmq_public.maintain_queues(step_limit int default 1000)
returns jsonb
language plpgsql volatile security definer
set search_path = '', pg_temp
set jit = off
as $$
begin
  return fairlease.maintain(step_limit);
end;
$$;

revoke all on function
  fairlease.measure_queue(fairlease.queues, int, timestamptz),
  fairlease.measure_dead_letters(text, int, timestamptz)
from public;

select fairlease.let_workers_call(array['queue_stats', 'maintain_queues']);

notify pgrst, 'reload schema';
