-- Settling a batch: lock, judge, apply by kind.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- A delivery ended and its message stays: its state says so. The 1 that a heartbeat booked for a
-- handler that began is taken back, since the delivery ended after all.
create or replace function fairlease.close_deliveries(
  p_queue text, p_outcomes fairlease.outcome[]
)
returns void
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  insert into fairlease.message_state as s (
    queue, msg_id, enqueued_at, closed_read_ct, closed_count, uncounted, last_error,
    first_delivered_at
  )
  select p_queue, o.id, o.enqueued_at, o.ct, 1,
    (o.verb in ('snooze', 'give_back'))::int, o.error, o.claimed_at
  from unnest(p_outcomes) o
  on conflict (queue, msg_id) do update set
    enqueued_at = excluded.enqueued_at,
    closed_read_ct = excluded.closed_read_ct,
    closed_count = excluded.closed_count
      + case when s.enqueued_at = excluded.enqueued_at then s.closed_count else 0 end,
    uncounted = excluded.uncounted
      + case when s.enqueued_at = excluded.enqueued_at then s.uncounted else 0 end,
    begun_count = case
      when s.enqueued_at <> excluded.enqueued_at then 0
      when s.begun_read_ct = excluded.closed_read_ct then s.begun_count - 1
      else s.begun_count
    end,
    begun_read_ct = case
      when s.enqueued_at = excluded.enqueued_at
        and s.begun_read_ct <> excluded.closed_read_ct
      then s.begun_read_ct
    end,
    last_error = case
      when s.enqueued_at = excluded.enqueued_at then coalesce(excluded.last_error, s.last_error)
      else excluded.last_error
    end,
    first_delivered_at = case
      when s.enqueued_at = excluded.enqueued_at
      then coalesce(s.first_delivered_at, excluded.first_delivered_at)
      else excluded.first_delivered_at
    end;
end;
$$;

-- Returns the ids that the archive could not take. What was done must not be done again because
-- somebody dropped the archive.
create or replace function fairlease.archive_messages(
  p_queue fairlease.queues, p_ids bigint[], p_now timestamptz
)
returns bigint[]
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_held bigint[];
begin
  if to_regclass(format('pgmq.%I', p_queue.archive_name)) is not null then
    execute format('select fairlease.q%s_archive($1, $2, $3)', p_queue.id)
      into v_held using p_queue.queue, p_ids, p_now;
    return v_held;
  end if;
  execute format($sql$
    with gone as (delete from pgmq.%I m where m.msg_id = any ($2) returning m.*)
    insert into fairlease.archive_conflicts (
      queue, msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers, moved_at
    )
    select $1, g.msg_id, g.read_ct, g.enqueued_at, %s, g.vt, g.message, %s, $3 from gone g
  $sql$, p_queue.table_name,
    case when p_queue.has_last_read_at then 'g.last_read_at' else 'null::timestamptz' end,
    case when p_queue.has_headers then 'g.headers' else 'null::jsonb' end
  ) using p_queue.queue, p_ids, p_now;
  return p_ids;
end;
$$;

-- All of one kind at once; returns the ids that the archive could not take.
create or replace function fairlease.apply_kind(
  p_queue fairlease.queues, p_holder text, p_kind text, p_outcomes fairlease.outcome[],
  p_now timestamptz
)
returns bigint[]
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_ids bigint[] := array(select o.id from unnest(p_outcomes) o);
  v_held bigint[];
begin
  if p_kind = 'stay' then
    execute format('select fairlease.q%s_reschedule($1, $2)', p_queue.id)
      using v_ids, array(select o.visible_at from unnest(p_outcomes) o);
    perform fairlease.close_deliveries(p_queue.queue, p_outcomes);
    return null;
  elsif p_kind = 'dead' then
    execute format('select fairlease.q%s_bury($1, $2, $3, $4)', p_queue.id)
      using p_queue.queue, p_holder, p_outcomes, p_now;
  elsif p_queue.on_success = 'delete' then
    execute format('select fairlease.q%s_delete($1)', p_queue.id) using v_ids;
  else
    v_held := fairlease.archive_messages(p_queue, v_ids, p_now);
  end if;
  delete from fairlease.message_state s where s.queue = p_queue.queue and s.msg_id = any (v_ids);
  return v_held;
end;
$$;

-- What the database refuses as a batch is tried one by one, so that only the culprit is refused.
create or replace function fairlease.apply_outcomes(
  p_queue fairlease.queues, p_holder text, p_kind text, p_outcomes fairlease.outcome[],
  p_now timestamptz
)
returns fairlease.outcome[]
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_held bigint[];
  v_one fairlease.outcome;
  v_done fairlease.outcome[] := '{}';
begin
  if cardinality(p_outcomes) is null then
    return v_done;
  end if;
  begin
    v_held := fairlease.apply_kind(p_queue, p_holder, p_kind, p_outcomes, p_now);
  exception
    when deadlock_detected or serialization_failure or lock_not_available then
      raise;
    when others then
      if cardinality(p_outcomes) > 1 then
        foreach v_one in array p_outcomes loop
          v_done := v_done
            || fairlease.apply_outcomes(p_queue, p_holder, p_kind, array[v_one], p_now);
        end loop;
        return v_done;
      end if;
      return array[fairlease.with_result(p_outcomes[1], 'refused', left(sqlerrm, 200))];
  end;
  return array(
    select fairlease.with_result(o, 'applied', case
      when o.id = any (v_held)
      then 'the archive holds this id already, or is missing: moved to archive_conflicts'
    end)
    from unnest(p_outcomes) o
  );
end;
$$;

-- Archive what can be archived at a stroke; returns the ids of the deliveries that were. Whatever
-- else there is to be said or done is left to the careful way, and so is all of it after an error.
create or replace function fairlease.finish_quickly(
  p_queue fairlease.queues, p_outcomes fairlease.outcome[], p_now timestamptz
)
returns bigint[]
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_ids bigint[];
  v_cts int[];
  v_finished bigint[];
begin
  if cardinality(p_outcomes) > 1 then
    select array_agg(o.id), array_agg(o.ct) into v_ids, v_cts
    from unnest(p_outcomes) o
    where o.verb = 'done';
  elsif p_outcomes[1].verb = 'done' then
    v_ids := array[p_outcomes[1].id];
    v_cts := array[p_outcomes[1].ct];
  end if;
  if v_ids is not null then
    execute format('select fairlease.q%s_finish($1, $2, $3, $4)', p_queue.id)
      into v_finished using p_queue.queue, v_ids, v_cts, p_now;
  end if;
  return v_finished;
exception
  when deadlock_detected or serialization_failure or lock_not_available then
    raise;
  when others then
    return null;
end;
$$;

-- Lock, judge, and apply by kind. Returns the outcomes with their results, in any order.
create or replace function fairlease.settle_carefully(
  p_queue fairlease.queues, p_holder text, p_outcomes fairlease.outcome[], p_now timestamptz
)
returns fairlease.outcome[]
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_locked fairlease.locked_message[];
  v_left fairlease.outcome[];
  v_done fairlease.outcome[];
  v_dead fairlease.outcome[];
  v_stay fairlease.outcome[];
begin
  execute format('select fairlease.q%s_lock($1)', p_queue.id)
    into v_locked using array(select o.id from unnest(p_outcomes) o where o.result is null);
  select array_agg(o) filter (where o.result <> 'due'),
    array_agg(o) filter (where o.result = 'due' and o.verb = 'done'),
    array_agg(o) filter (where o.result = 'due' and o.verb = 'dead'),
    array_agg(o) filter (where o.result = 'due' and o.verb not in ('done', 'dead'))
  into v_left, v_done, v_dead, v_stay
  from unnest(fairlease.judge_outcomes(p_queue, p_outcomes, v_locked, p_now)) o;
  if v_done is not null then
    v_left := v_left || fairlease.apply_outcomes(p_queue, p_holder, 'done', v_done, p_now);
  end if;
  if v_dead is not null then
    v_left := v_left || fairlease.apply_outcomes(p_queue, p_holder, 'dead', v_dead, p_now);
  end if;
  if v_stay is not null then
    v_left := v_left || fairlease.apply_outcomes(p_queue, p_holder, 'stay', v_stay, p_now);
  end if;
  return v_left;
end;
$$;

-- The careful way is always right; the quick one is for calls in which no delivery is named twice.
create or replace function fairlease.settle(
  p_queue fairlease.queues, p_holder text, p_outcomes fairlease.outcome[], p_pin_org text,
  p_limited boolean, p_now timestamptz
)
returns fairlease.outcome[]
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_finished bigint[];
  v_settled fairlease.outcome[];
  v_left fairlease.outcome[] := p_outcomes;
begin
  if p_limited or fairlease.concerns_orgs(p_queue.queue, p_outcomes, p_pin_org) then
    perform fairlease.lock_orgs_to_settle(p_queue, p_outcomes, p_pin_org);
    if cardinality(p_outcomes) = 0 then
      return p_outcomes;
    end if;
    v_settled := fairlease.settle_carefully(p_queue, p_holder, p_outcomes, p_now);
    perform fairlease.tell_circuits(p_queue.queue, v_settled, p_now);
    return v_settled;
  end if;
  if cardinality(p_outcomes) = 0 then
    return p_outcomes;
  end if;
  -- Where only some are done, these would be locked before the others: out of the order of ids.
  if p_queue.on_success = 'archive' and fairlease.all_done_once(p_outcomes) then
    v_finished := fairlease.finish_quickly(p_queue, p_outcomes, p_now);
    if cardinality(v_finished) = cardinality(p_outcomes) then
      return fairlease.all_applied(p_outcomes);
    end if;
    select array_agg(fairlease.with_result(o, 'applied', null))
        filter (where o.id = any (v_finished)),
      array_agg(o) filter (where (o.id = any (v_finished)) is not true)
    into v_settled, v_left
    from unnest(p_outcomes) o;
  end if;
  if cardinality(v_left) > 0 then
    v_settled := v_settled || fairlease.settle_carefully(p_queue, p_holder, v_left, p_now);
  end if;
  return v_settled;
end;
$$;

create or replace function fairlease.all_done_once(p_outcomes fairlease.outcome[])
returns boolean
language plpgsql immutable
set search_path = '', pg_temp
as $$
begin
  if cardinality(p_outcomes) = 1 then
    return p_outcomes[1].verb is not distinct from 'done';
  end if;
  return (
    select count(distinct o.id) filter (where o.verb = 'done') = cardinality(p_outcomes)
    from unnest(p_outcomes) o
  );
end;
$$;

-- `with_result` for each of many, without a call for each.
create or replace function fairlease.all_applied(p_outcomes fairlease.outcome[])
returns fairlease.outcome[]
language plpgsql immutable
set search_path = '', pg_temp
as $$
begin
  if cardinality(p_outcomes) = 1 then
    return array[fairlease.with_result(p_outcomes[1], 'applied', null)];
  end if;
  return array(
    select row(
      o.place, o.id, o.ct, o.verb, o.after_ms, o.took_ms, o.reason, o.error, o.limited, o.limit_ms,
      o.limit_reason, 'applied', o.note, o.org, o.enqueued_at, o.claimed_at, o.visible_at, o.attempt
    )::fairlease.outcome
    from unnest(p_outcomes) o
  );
end;
$$;

revoke all on function
  fairlease.close_deliveries(text, fairlease.outcome[]),
  fairlease.archive_messages(fairlease.queues, bigint[], timestamptz),
  fairlease.apply_kind(fairlease.queues, text, text, fairlease.outcome[], timestamptz),
  fairlease.apply_outcomes(fairlease.queues, text, text, fairlease.outcome[], timestamptz),
  fairlease.finish_quickly(fairlease.queues, fairlease.outcome[], timestamptz),
  fairlease.settle_carefully(fairlease.queues, text, fairlease.outcome[], timestamptz),
  fairlease.settle(fairlease.queues, text, fairlease.outcome[], text, boolean, timestamptz),
  fairlease.all_done_once(fairlease.outcome[]),
  fairlease.all_applied(fairlease.outcome[])
from public;

notify pgrst, 'reload schema';
