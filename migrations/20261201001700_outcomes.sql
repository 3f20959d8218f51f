-- What became of a delivery: read from JSON, and judged against the message as it is now.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

do $$
begin
  if pg_catalog.to_regtype('fairlease.locked_message') is null then
    create type fairlease.locked_message as (
      msg_id bigint, read_ct int, enqueued_at timestamptz, last_read_at timestamptz, org text
    );
  end if;
  -- `result` null: not judged yet; `due`: to be applied; else as the caller gets it.
  if pg_catalog.to_regtype('fairlease.outcome') is null then
    create type fairlease.outcome as (
      place int, id bigint, ct int, verb text, after_ms numeric, took_ms numeric, reason text,
      error text, limited boolean, limit_ms numeric, limit_reason text, result text, note text,
      org text, enqueued_at timestamptz, claimed_at timestamptz, visible_at timestamptz,
      attempt int
    );
  end if;
end;
$$;

-- The number in a JSON value, null if it is none or out of bounds.
create or replace function fairlease.number_in(p_value jsonb, p_least numeric, p_most numeric)
returns numeric
language plpgsql immutable parallel safe
set search_path = ''
as $$
declare
  v_number numeric;
begin
  if jsonb_typeof(p_value) = 'number' then
    v_number := (p_value #>> '{}')::numeric;
    if v_number between p_least and p_most then
      return v_number;
    end if;
  end if;
  return null;
end;
$$;

-- Never raises: one outcome that cannot be read must not undo its neighbours.
create or replace function fairlease.parse_outcome(p_said jsonb, p_place int)
returns fairlease.outcome
language plpgsql immutable parallel safe
set search_path = ''
as $$
declare
  v_outcome fairlease.outcome;
  v_limit jsonb := nullif(p_said -> 'limit', 'null');
  -- Ten years: further off is a mistake in units.
  v_longest constant numeric := 315576000000;
begin
  v_outcome.place := p_place;
  v_outcome.id := fairlease.whole_in(p_said -> 'id', -9223372036854775808, 9223372036854775807);
  v_outcome.ct := fairlease.whole_in(p_said -> 'ct', 1, 2147483647);
  v_outcome.verb := p_said ->> 'do';
  v_outcome.after_ms := case
    when coalesce(p_said -> 'after_ms', 'null') = 'null' then 0
    else fairlease.number_in(p_said -> 'after_ms', 0, v_longest)
  end;
  v_outcome.took_ms := coalesce(fairlease.number_in(p_said -> 'took_ms', 0, v_longest), 0);
  v_outcome.reason := left(p_said ->> 'reason', 1000);
  v_outcome.error := left(p_said ->> 'error', 16000);
  v_outcome.limited := v_limit is not null;
  v_outcome.limit_ms := fairlease.number_in(v_limit -> 'until_ms', 0, 'infinity');
  v_outcome.limit_reason := left(v_limit ->> 'reason', 1000);
  v_outcome.note := case
    when jsonb_typeof(p_said) <> 'object' then 'an outcome must be an object'
    when v_outcome.id is null then 'id must be a message id'
    when v_outcome.ct is null then 'ct must be the read_ct of the delivery'
    when coalesce(v_outcome.verb not in ('done', 'retry', 'snooze', 'give_back', 'dead'), true)
    then 'do must be done, retry, snooze, give_back or dead'
    when v_outcome.after_ms is null then 'after_ms must be a number from 0 to ten years'
    when v_limit is not null and jsonb_typeof(v_limit) <> 'object' then 'limit must be an object'
  end;
  if v_outcome.note is not null then
    v_outcome.result := 'refused';
  end if;
  return v_outcome;
end;
$$;

create or replace function fairlease.whole_in(p_value jsonb, p_least numeric, p_most numeric)
returns numeric
language plpgsql immutable parallel safe
set search_path = ''
as $$
declare
  v_number numeric := fairlease.number_in(p_value, p_least, p_most);
begin
  return case when v_number = trunc(v_number) then v_number end;
end;
$$;

create or replace function fairlease.parse_outcomes(p_said jsonb)
returns fairlease.outcome[]
language plpgsql immutable parallel safe
set search_path = ''
as $$
begin
  if coalesce(jsonb_typeof(p_said) <> 'array', true) then
    raise exception 'outcomes must be an array: pass [] to settle nothing';
  elsif jsonb_array_length(p_said) > 500 then
    raise exception 'outcomes must be at most 500, got %: send the rest in a second call',
      jsonb_array_length(p_said);
  end if;
  return array(
    select fairlease.parse_outcome(e.value, e.place::int)
    from jsonb_array_elements(p_said) with ordinality e (value, place)
  );
end;
$$;

-- One outcome against its message, locked, and the message's state, read after the lock.
create or replace function fairlease.judge_outcome(
  p_outcome fairlease.outcome, p_locked fairlease.locked_message,
  p_state fairlease.message_state, p_max_attempts int, p_now timestamptz
)
returns fairlease.outcome
language plpgsql immutable parallel safe
set search_path = ''
as $$
begin
  if p_outcome.result is not null then
    return p_outcome;
  end if;
  p_outcome.result := case
    when p_locked.msg_id is null then 'gone'
    when p_locked.read_ct <> p_outcome.ct then 'lost'
    when p_state.closed_read_ct = p_outcome.ct then 'already'
    else 'due'
  end;
  p_outcome.org := p_locked.org;
  p_outcome.enqueued_at := p_locked.enqueued_at;
  p_outcome.attempt := p_locked.read_ct - coalesce(p_state.uncounted, 0);
  p_outcome.claimed_at := coalesce(
    p_locked.last_read_at, p_now - make_interval(secs => (p_outcome.took_ms / 1000)::float8)
  );
  p_outcome.visible_at := p_now + case
    when p_outcome.verb = 'give_back' then interval '0'
    else make_interval(secs => (p_outcome.after_ms / 1000)::float8)
  end;
  if p_outcome.verb = 'retry' and p_outcome.attempt >= p_max_attempts then
    p_outcome.verb := 'dead';
    p_outcome.reason := 'max_attempts';
    p_outcome.note := 'attempts used up: moved to the dead letters';
  end if;
  return p_outcome;
end;
$$;

-- A delivery named twice in one call is settled once; the second hears what it would have heard in
-- a second call.
create or replace function fairlease.judge_outcomes(
  p_queue fairlease.queues, p_outcomes fairlease.outcome[],
  p_locked fairlease.locked_message[], p_now timestamptz
)
returns fairlease.outcome[]
language plpgsql volatile
set search_path = ''
as $$
declare
  v_row record;
  v_outcome fairlease.outcome;
  v_judged fairlease.outcome[] := '{}';
  v_left bigint[] := '{}';
  v_stayed bigint[] := '{}';
begin
  for v_row in
    select o as outcome, l as locked, s as state
    from unnest(p_outcomes) o
    left join unnest(p_locked) l on l.msg_id = o.id
    left join fairlease.message_state s
      on s.queue = p_queue.queue and s.msg_id = l.msg_id and s.enqueued_at = l.enqueued_at
    order by o.place
  loop
    v_outcome := fairlease.judge_outcome(
      v_row.outcome, v_row.locked, v_row.state, p_queue.max_attempts, p_now
    );
    if v_outcome.id = any (v_left) then
      v_outcome.result := 'gone';
    elsif v_outcome.result = 'due' and v_outcome.id = any (v_stayed) then
      v_outcome.result := 'already';
    elsif v_outcome.result = 'due' and v_outcome.verb in ('done', 'dead') then
      v_left := array_append(v_left, v_outcome.id);
    elsif v_outcome.result = 'due' then
      v_stayed := array_append(v_stayed, v_outcome.id);
    end if;
    v_judged := array_append(v_judged, v_outcome);
  end loop;
  return v_judged;
end;
$$;

revoke all on function
  fairlease.number_in(jsonb, numeric, numeric),
  fairlease.whole_in(jsonb, numeric, numeric),
  fairlease.parse_outcome(jsonb, int),
  fairlease.parse_outcomes(jsonb),
  fairlease.judge_outcome(
    fairlease.outcome, fairlease.locked_message, fairlease.message_state, int, timestamptz
  ),
  fairlease.judge_outcomes(
    fairlease.queues, fairlease.outcome[], fairlease.locked_message[], timestamptz
  )
from public;

notify pgrst, 'reload schema';
