-- Keeping a slot and the deliveries in flight.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

create or replace function fairlease.parse_deliveries(p_said jsonb)
returns fairlease.outcome[]
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
declare
  v_deliveries fairlease.outcome[] := '{}';
  v_one fairlease.outcome;
  v_pair jsonb;
  v_ct bigint;
begin
  if coalesce(jsonb_typeof(p_said) <> 'array', true) then
    raise exception 'deliveries must be an array of [id, ct]: pass [] to renew only';
  elsif jsonb_array_length(p_said) > 5000 then
    raise exception 'deliveries must be at most 5000, got %: send the rest in a second call',
      jsonb_array_length(p_said);
  end if;
  for v_pair in select e from jsonb_array_elements(p_said) e loop
    v_one.id := fairlease.whole_in(v_pair -> 0, -9223372036854775808);
    v_ct := fairlease.whole_in(v_pair -> 1, 1);
    if v_one.id is null or v_ct is null or v_ct > 2147483647 then
      raise exception 'deliveries must be pairs [id, ct], got %: pass a message''s id and read_ct',
        left(v_pair::text, 60);
    end if;
    v_one.ct := v_ct;
    v_deliveries := array_append(v_deliveries, v_one);
  end loop;
  return v_deliveries;
end;
$$;

-- Book once that a handler begins although an earlier delivery never ended: if this one does not
-- end either, that was a crash.
create or replace function fairlease.book_beginnings(
  p_queue text, p_extended fairlease.locked_message[]
)
returns void
language sql volatile
set search_path = '', pg_temp
as $$
  insert into fairlease.message_state as s (
    queue, msg_id, enqueued_at, begun_read_ct, begun_count
  )
  select p_queue, e.msg_id, e.enqueued_at, e.read_ct, 1
  from unnest(p_extended) e
  cross join lateral fairlease.state_of(p_queue, e.msg_id, e.enqueued_at) k
  where e.read_ct - coalesce(k.closed_count, 0) > 1
    and k.begun_read_ct is distinct from e.read_ct
  on conflict (queue, msg_id) do update set
    begun_read_ct = excluded.begun_read_ct,
    begun_count = excluded.begun_count
      + case when s.enqueued_at = excluded.enqueued_at then s.begun_count else 0 end,
    closed_read_ct = case when s.enqueued_at = excluded.enqueued_at then s.closed_read_ct end,
    closed_count = case when s.enqueued_at = excluded.enqueued_at then s.closed_count else 0 end,
    uncounted = case when s.enqueued_at = excluded.enqueued_at then s.uncounted else 0 end,
    enqueued_at = excluded.enqueued_at
$$;

-- Extend what is still running of the deliveries. A delivery that is over is not ours to touch: its
-- message may have been given back. It is reported as lost.
create or replace function fairlease.extend_deliveries(
  p_queue fairlease.queues, p_deliveries fairlease.outcome[], p_sleep_seconds int
)
returns jsonb
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_ids bigint[] := array(select d.id from unnest(p_deliveries) d);
  v_until timestamptz;
  v_locked fairlease.locked_message[];
  v_extended fairlease.locked_message[];
begin
  perform from fairlease.circuits c
    where c.probe_queue = p_queue.queue and c.probe_id = any (v_ids)
    order by c.org for update;
  execute format('select fairlease.q%s_lock($1)', p_queue.id) into v_locked using v_ids;
  -- After the wait: what is extended must not be visible by the time that the answer arrives.
  v_until := fairlease.now_() + make_interval(secs => p_sleep_seconds);
  v_extended := array(
    select l
    from unnest(v_locked) l
    cross join lateral fairlease.state_of(p_queue.queue, l.msg_id, l.enqueued_at) s
    where s.closed_read_ct is distinct from l.read_ct
      and exists (
        select from unnest(p_deliveries) d where d.id = l.msg_id and d.ct = l.read_ct
      )
  );
  execute format('select fairlease.q%s_reschedule($1, $2)', p_queue.id)
    using array(select e.msg_id from unnest(v_extended) e),
      array(select v_until from unnest(v_extended) e);
  perform fairlease.book_beginnings(p_queue.queue, v_extended);
  update fairlease.circuits c
  set probe_until = v_until
  from unnest(v_extended) e
  where c.probe_queue = p_queue.queue and c.probe_id = e.msg_id and c.probe_ct = e.read_ct;
  return fairlease.sort_deliveries(p_deliveries, v_locked, v_extended);
end;
$$;

create or replace function fairlease.sort_deliveries(
  p_deliveries fairlease.outcome[], p_locked fairlease.locked_message[],
  p_extended fairlease.locked_message[]
)
returns jsonb
language sql immutable parallel safe
set search_path = '', pg_temp
as $$
  select jsonb_build_object(
    'extended', coalesce(jsonb_agg(d.id) filter (where e.msg_id is not null), '[]'),
    'lost', coalesce(
      jsonb_agg(d.id) filter (where e.msg_id is null and l.msg_id is not null), '[]'
    ),
    'gone', coalesce(jsonb_agg(d.id) filter (where l.msg_id is null), '[]')
  )
  from (select distinct d.id, d.ct from unnest(p_deliveries) d) d
  left join unnest(p_locked) l on l.msg_id = d.id
  left join unnest(p_extended) e on e.msg_id = d.id and e.read_ct = d.ct
$$;

create or replace function pgmq_public.heartbeat_org_slot(
  queue_name text, holder text, lease_ttl_seconds int, sleep_seconds int, deliveries jsonb
)
returns jsonb
language plpgsql volatile security definer
set search_path = '', pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_queue fairlease.queues;
  v_deliveries fairlease.outcome[];
  v_slot fairlease.seats;
  v_alive boolean;
  v_checked boolean := fairlease.check_slot_arguments(holder, lease_ttl_seconds);
begin
  if coalesce(sleep_seconds, -1) < 0 then
    raise exception 'sleep_seconds must be 0 or more, got %: pass the visibility timeout',
      coalesce(sleep_seconds::text, 'null');
  end if;
  v_deliveries := fairlease.parse_deliveries(deliveries);
  v_queue := fairlease.attached(queue_name);
  v_slot := fairlease.own_slot(holder);
  v_alive := fairlease.renew(queue_name, holder, lease_ttl_seconds, v_slot, fairlease.now_());
  if cardinality(v_deliveries) = 0 then
    return jsonb_build_object(
      'slot_alive', v_alive, 'extended', '[]'::jsonb, 'lost', '[]'::jsonb, 'gone', '[]'::jsonb
    );
  end if;
  return jsonb_build_object('slot_alive', v_alive)
    || fairlease.extend_deliveries(v_queue, v_deliveries, sleep_seconds);
exception
  when deadlock_detected or serialization_failure then
    raise exception using errcode = 'lock_not_available',
      message = 'heartbeat_org_slot met a lock conflict: call it again';
  when undefined_table or undefined_function then
    perform fairlease.raise_missing(queue_name, sqlerrm);
end;
$$;

revoke all on function
  fairlease.parse_deliveries(jsonb),
  fairlease.book_beginnings(text, fairlease.locked_message[]),
  fairlease.extend_deliveries(fairlease.queues, fairlease.outcome[], int),
  fairlease.sort_deliveries(
    fairlease.outcome[], fairlease.locked_message[], fairlease.locked_message[]
  )
from public;

select fairlease.let_workers_call(array['heartbeat_org_slot']);

notify pgrst, 'reload schema';
