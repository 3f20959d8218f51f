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

-- The whole number, from `p_least` to the largest of 64 bits, that a JSON value is.
create or replace function fairlease.whole_in(p_value jsonb, p_least bigint)
returns bigint
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
declare
  v_number numeric := case when jsonb_typeof(p_value) = 'number' then p_value::numeric end;
begin
  return case
    when v_number = trunc(v_number) and v_number between p_least and 9223372036854775807
    then v_number
  end;
end;
$$;

-- One outcome that cannot be read is refused, and does not undo its neighbours. In one query and
-- without a function for each: half of what reading them cost went into calling it.
create or replace function fairlease.parse_outcomes(p_said jsonb)
returns fairlease.outcome[]
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
declare
  -- Ten years: further off is a mistake in units.
  v_longest constant numeric := 315576000000;
begin
  if coalesce(jsonb_typeof(p_said) <> 'array', true) then
    raise exception 'outcomes must be an array: pass [] to settle nothing';
  elsif jsonb_array_length(p_said) > 500 then
    raise exception 'outcomes must be at most 500, got %: send the rest in a second call',
      jsonb_array_length(p_said);
  end if;
  return array(
    select case when r.note is null then row(
        r.place, r.id, r.ct, r.verb, r.after_ms,
        least(greatest(coalesce(r.took_ms, 0), 0), v_longest),
        left(r.said ->> 'reason', 1000), left(r.said ->> 'error', 16000), r.said_limit is not null,
        case when jsonb_typeof(r.said_limit -> 'until_ms') = 'number'
          then greatest((r.said_limit -> 'until_ms')::numeric, 0) end,
        left(r.said_limit ->> 'reason', 1000), null, null, null, null, null, null, null
      )::fairlease.outcome
      else row(
        r.place, case when r.id = trunc(r.id) and abs(r.id) <= 9223372036854775807 then r.id end,
        null, null, null, null, null, null, null, null, null, 'refused', r.note,
        null, null, null, null, null
      )::fairlease.outcome
    end
    from (
      select n.*, case
        when jsonb_typeof(n.said) <> 'object' then 'an outcome must be an object'
        when n.id is null or n.id <> trunc(n.id) or abs(n.id) > 9223372036854775807
        then 'id must be a message id'
        when n.ct is null or n.ct <> trunc(n.ct) or not n.ct between 1 and 2147483647
        then 'ct must be the read_ct of the delivery'
        when coalesce(n.verb not in ('done', 'retry', 'snooze', 'give_back', 'dead'), true)
        then 'do must be done, retry, snooze, give_back or dead'
        when n.after_ms is null or not n.after_ms between 0 and v_longest
        then 'after_ms must be a number from 0 to ten years'
        when jsonb_typeof(n.said_limit) <> 'object' then 'limit must be an object'
      end as note
      from (
        select e.value as said, e.place::int, e.value ->> 'do' as verb,
          case when jsonb_typeof(e.value -> 'id') = 'number' then (e.value -> 'id')::numeric end as id,
          case when jsonb_typeof(e.value -> 'ct') = 'number' then (e.value -> 'ct')::numeric end as ct,
          case coalesce(jsonb_typeof(e.value -> 'after_ms'), 'null')
            when 'null' then 0
            when 'number' then (e.value -> 'after_ms')::numeric
          end as after_ms,
          case when jsonb_typeof(e.value -> 'took_ms') = 'number'
            then (e.value -> 'took_ms')::numeric end as took_ms,
          nullif(e.value -> 'limit', 'null') as said_limit
        from jsonb_array_elements(p_said) with ordinality e (value, place)
        offset 0
      ) n
      offset 0
    ) r
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
set search_path = '', pg_temp
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
  if p_outcome.result <> 'due' then
    return p_outcome;
  end if;
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

create or replace function fairlease.judge_outcomes(
  p_queue fairlease.queues, p_outcomes fairlease.outcome[],
  p_locked fairlease.locked_message[], p_now timestamptz
)
returns fairlease.outcome[]
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_judged fairlease.outcome[] := array(
    select fairlease.judge_outcome(
      o, l, fairlease.state_of(p_queue.queue, l.msg_id, l.enqueued_at), p_queue.max_attempts, p_now
    )
    from unnest(p_outcomes) o
    left join unnest(p_locked) l on l.msg_id = o.id
    order by o.place
  );
begin
  if cardinality(v_judged) > 1 then
    return fairlease.judge_repeated(v_judged);
  end if;
  return v_judged;
end;
$$;

-- A delivery named twice in one call is settled once; the second hears what it would have heard in
-- a second call.
create or replace function fairlease.judge_repeated(p_judged fairlease.outcome[])
returns fairlease.outcome[]
language plpgsql immutable
set search_path = '', pg_temp
as $$
begin
  return array(
    select case
      when f.verb is null or f.place >= o.place then o
      when f.verb in ('done', 'dead') then fairlease.with_result(o, 'gone', null)
      when o.result = 'due' then fairlease.with_result(o, 'already', null)
      else o
    end
    from unnest(p_judged) o
    left join (
      select distinct on (d.id) d.id, d.place, d.verb
      from unnest(p_judged) d
      where d.result = 'due'
      order by d.id, d.place
    ) f on f.id = o.id and o.result <> 'refused'
    order by o.place
  );
end;
$$;

create or replace function fairlease.with_result(
  p_outcome fairlease.outcome, p_result text, p_note text
)
returns fairlease.outcome
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
begin
  p_outcome.result := p_result;
  p_outcome.note := coalesce(p_note, p_outcome.note);
  return p_outcome;
end;
$$;

revoke all on function
  fairlease.whole_in(jsonb, bigint),
  fairlease.parse_outcomes(jsonb),
  fairlease.judge_outcome(
    fairlease.outcome, fairlease.locked_message, fairlease.message_state, int, timestamptz
  ),
  fairlease.judge_outcomes(
    fairlease.queues, fairlease.outcome[], fairlease.locked_message[], timestamptz
  ),
  fairlease.judge_repeated(fairlease.outcome[]),
  fairlease.with_result(fairlease.outcome, text, text)
from public;

notify pgrst, 'reload schema';
