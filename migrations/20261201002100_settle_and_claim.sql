-- One round trip for what became of the last messages and for the next ones.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

do $$
begin
  -- A message as the caller gets it, in the order of its fields.
  if pg_catalog.to_regtype('fairlease.delivered') is null then
    create type fairlease.delivered as (
      msg_id bigint, read_ct int, enqueued_at timestamptz, vt timestamptz, attempt int,
      crashes int, closed_count int, message jsonb, headers jsonb
    );
  end if;
end;
$$;

-- The answer is put together as text and sent as it is: jsonb would be read, copied value by value
-- and written again, a fifth of the whole call.
create or replace function fairlease.settled_text(p_outcomes fairlease.outcome[])
returns text
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
begin
  if cardinality(p_outcomes) = 0 then
    return '[]';
  elsif cardinality(p_outcomes) = 1 and p_outcomes[1].note is null then
    return '[{"id":' || coalesce(p_outcomes[1].id::text, 'null')
      || ',"result":"' || p_outcomes[1].result || '"}]';
  end if;
  return '[' || (
    select string_agg(
      '{"id":' || coalesce(o.id::text, 'null') || ',"result":"' || o.result || '"'
        || case when o.note is null then '' else ',"note":' || to_json(o.note) end || '}',
      ',' order by o.place
    )
    from unnest(p_outcomes) o
  ) || ']';
end;
$$;

create or replace function fairlease.deliveries_text(
  p_queue text, p_messages fairlease.delivery[]
)
returns text
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_states fairlease.message_state[];
  v_one fairlease.delivery := p_messages[1];
  v_state fairlease.message_state;
begin
  if p_messages is null then
    return '[]';
  elsif cardinality(p_messages) = 1 then
    v_state := fairlease.state_of(p_queue, v_one.msg_id, v_one.enqueued_at);
    return '[' || to_json(row(
      v_one.msg_id, v_one.read_ct, v_one.enqueued_at, v_one.vt,
      v_one.read_ct - coalesce(v_state.uncounted, 0), coalesce(v_state.begun_count, 0),
      coalesce(v_state.closed_count, 0), v_one.message, v_one.headers
    )::fairlease.delivered) || ']';
  end if;
  -- By an array of ids and not by a join, which may be planned as a look at all the state there is.
  v_states := array(
    select s from fairlease.message_state s
    where s.queue = p_queue and s.msg_id = any (array(select m.msg_id from unnest(p_messages) m))
  );
  return (
    select json_agg(row(
      m.msg_id, m.read_ct, m.enqueued_at, m.vt, m.read_ct - coalesce(s.uncounted, 0),
      coalesce(s.begun_count, 0), coalesce(s.closed_count, 0), m.message, m.headers
    )::fairlease.delivered order by m.place)
    from unnest(p_messages) with ordinality
      m (msg_id, read_ct, enqueued_at, vt, message, headers, place)
    left join unnest(v_states) s on s.msg_id = m.msg_id and s.enqueued_at = m.enqueued_at
  );
end;
$$;

create or replace function fairlease.claim_json(
  p_queue text, p_answer fairlease.claim_answer, p_settled fairlease.outcome[]
)
returns json
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_messages text := fairlease.deliveries_text(p_queue, p_answer.messages);
begin
  if octet_length(v_messages) > 256 * 1024 * 1024 then
    raise exception 'the messages of one answer are larger than 256 MB: claim fewer'
      using errcode = 'program_limit_exceeded';
  end if;
  return (
    '{"status":' || coalesce('"' || p_answer.status || '"', 'null')
    || ',"org":' || coalesce(to_json(p_answer.org)::text, 'null')
    || case when p_answer.cause is null then '' else ',"cause":"' || p_answer.cause || '"' end
    || case when p_answer.retry_after_ms is null then ''
      else ',"retry_after_ms":' || p_answer.retry_after_ms end
    || ',"settled":' || fairlease.settled_text(p_settled)
    || ',"messages":' || v_messages || '}'
  )::json;
end;
$$;

-- n = 0 settles only: the other arguments of the claim are not looked at.
create or replace function pgmq_public.settle_and_claim(
  queue_name text, holder text, outcomes jsonb, n int, sleep_seconds int, lease_ttl_seconds int,
  max_per_org int, global_cap int, pin_org text default null
)
returns json
language plpgsql volatile security definer
set search_path = '', pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_ask fairlease.claim_ask;
  v_queue fairlease.queues;
  v_outcomes fairlease.outcome[];
  v_settled fairlease.outcome[];
  v_answer fairlease.claim_answer;
  v_org text := fairlease.fold_org(pin_org);
  v_checked boolean;
begin
  v_ask := fairlease.new_ask(
    queue_name, holder, sleep_seconds, case when n > 500 then 500 else n end, lease_ttl_seconds,
    max_per_org, global_cap, pin_org is not null, false
  );
  v_checked := case
    when n = 0 then fairlease.check_slot_arguments(holder, 1)
    else fairlease.check_claim_arguments(v_ask, pin_org)
  end;
  v_outcomes := fairlease.parse_outcomes(outcomes);
  v_queue := fairlease.attached(queue_name);
  v_ask.queue_id := v_queue.id;
  v_ask := fairlease.open_ask(v_ask);
  v_settled := fairlease.settle(
    v_queue, holder, v_outcomes, case when n > 0 then v_org end, outcomes @? '$[*].limit',
    v_ask.asked_at
  );
  if n > 0 then
    v_answer := fairlease.claim_opened(fairlease.refresh_ask(v_ask), v_org);
  end if;
  return fairlease.claim_json(queue_name, v_answer, v_settled);
exception
  when deadlock_detected or serialization_failure then
    raise exception using errcode = 'lock_not_available',
      message = 'settle_and_claim met a lock conflict: call it again';
  when program_limit_exceeded then
    -- More than an answer holds. Fewer messages, then; everything above was undone.
    if coalesce(n, 0) <= 1 then
      raise;
    end if;
    return pgmq_public.settle_and_claim(
      queue_name, holder, outcomes, greatest(least(n, 500) / 4, 1), sleep_seconds,
      lease_ttl_seconds, max_per_org, global_cap, pin_org
    );
  when undefined_function then
    -- The messages are there: who hears that they are gone does not settle them again.
    perform fairlease.raise_missing(queue_name, sqlerrm);
  when undefined_table then
    -- Handlers that were in flight when their queue was dropped hear of their messages first.
    if cardinality(v_outcomes) = 0 or not fairlease.queue_is_lost(queue_name) then
      perform fairlease.raise_missing(queue_name, sqlerrm);
    end if;
    return fairlease.claim_json(queue_name, fairlease.refusal('no_demand', null), array(
      select fairlease.with_result(o, coalesce(o.result, 'gone'), null) from unnest(v_outcomes) o
    ));
end;
$$;

revoke all on function
  fairlease.settled_text(fairlease.outcome[]),
  fairlease.deliveries_text(text, fairlease.delivery[]),
  fairlease.claim_json(text, fairlease.claim_answer, fairlease.outcome[])
from public;

select fairlease.let_workers_call(array['settle_and_claim']);

notify pgrst, 'reload schema';
