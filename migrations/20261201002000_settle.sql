-- Settling a batch: lock, judge, apply by kind.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- A delivery ended and its message stays: its state says so. The 1 that a heartbeat booked for a
-- handler that began is taken back, since the delivery ended after all.
create or replace function fairlease.close_deliveries(
  p_queue text, p_outcomes fairlease.outcome[]
)
returns void
language sql volatile
set search_path = ''
as $$
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
    end
$$;

-- All of one kind at once; returns the ids that the archive already held.
create or replace function fairlease.apply_kind(
  p_queue fairlease.queues, p_holder text, p_kind text, p_outcomes fairlease.outcome[],
  p_now timestamptz
)
returns bigint[]
language plpgsql volatile
set search_path = ''
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
    execute format('select fairlease.q%s_archive($1, $2, $3)', p_queue.id)
      into v_held using p_queue.queue, v_ids, p_now;
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
set search_path = ''
as $$
declare
  v_held bigint[];
  v_one fairlease.outcome;
  v_done fairlease.outcome[] := '{}';
begin
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
      v_one := p_outcomes[1];
      v_one.result := 'refused';
      v_one.note := left(sqlerrm, 200);
      return array[v_one];
  end;
  foreach v_one in array p_outcomes loop
    v_one.result := 'applied';
    if v_one.id = any (v_held) then
      v_one.note := 'the archive already held this id: moved to archive_conflicts';
    end if;
    v_done := array_append(v_done, v_one);
  end loop;
  return v_done;
end;
$$;

create or replace function fairlease.kind_of(p_outcome fairlease.outcome)
returns text
language plpgsql immutable parallel safe
set search_path = ''
as $$
begin
  return case
    when p_outcome.result <> 'due' then 'settled'
    when p_outcome.verb in ('done', 'dead') then p_outcome.verb
    else 'stay'
  end;
end;
$$;

-- The outcomes with their results, in any order.
create or replace function fairlease.settle(
  p_queue fairlease.queues, p_holder text, p_outcomes fairlease.outcome[], p_pin_org text,
  p_now timestamptz
)
returns fairlease.outcome[]
language plpgsql volatile
set search_path = ''
as $$
declare
  v_locked fairlease.locked_message[];
  v_judged fairlease.outcome[];
  v_settled fairlease.outcome[] := '{}';
  v_kind record;
begin
  perform fairlease.lock_orgs_to_settle(p_queue, p_outcomes, p_pin_org);
  if cardinality(p_outcomes) = 0 then
    return p_outcomes;
  end if;
  execute format('select fairlease.q%s_lock($1)', p_queue.id)
    into v_locked using array(select o.id from unnest(p_outcomes) o where o.result is null);
  v_judged := fairlease.judge_outcomes(p_queue, p_outcomes, v_locked, p_now);
  for v_kind in
    select fairlease.kind_of(o) as kind, array_agg(o order by o.place) as outcomes
    from unnest(v_judged) o
    group by 1
  loop
    v_settled := v_settled || case
      when v_kind.kind = 'settled' then v_kind.outcomes
      else fairlease.apply_outcomes(p_queue, p_holder, v_kind.kind, v_kind.outcomes, p_now)
    end;
  end loop;
  perform fairlease.tell_circuits(p_queue.queue, v_settled, p_now);
  return v_settled;
end;
$$;

revoke all on function
  fairlease.close_deliveries(text, fairlease.outcome[]),
  fairlease.apply_kind(fairlease.queues, text, text, fairlease.outcome[], timestamptz),
  fairlease.apply_outcomes(fairlease.queues, text, text, fairlease.outcome[], timestamptz),
  fairlease.kind_of(fairlease.outcome),
  fairlease.settle(fairlease.queues, text, fairlease.outcome[], text, timestamptz)
from public;

notify pgrst, 'reload schema';
