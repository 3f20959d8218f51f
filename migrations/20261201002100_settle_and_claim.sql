-- One round trip for what became of the last messages and for the next ones.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- jsonb_build_object looks every argument's type up at every call: what is small goes through text.
create or replace function fairlease.settled_json(p_outcomes fairlease.outcome[])
returns jsonb
language plpgsql immutable parallel safe
set search_path = ''
as $$
declare
  v_outcome fairlease.outcome;
  v_items text[] := '{}';
begin
  if cardinality(p_outcomes) > 1 then
    p_outcomes := array(select o from unnest(p_outcomes) o order by o.place);
  end if;
  foreach v_outcome in array p_outcomes loop
    v_items := array_append(v_items,
      '{"id":' || coalesce(v_outcome.id::text, 'null') || ',"result":"' || v_outcome.result || '"'
      || case when v_outcome.note is null then '' else ',"note":' || to_json(v_outcome.note) end
      || '}');
  end loop;
  return ('[' || array_to_string(v_items, ',') || ']')::jsonb;
end;
$$;

create or replace function fairlease.deliveries_json(
  p_queue text, p_messages fairlease.delivery[]
)
returns jsonb
language plpgsql volatile
set search_path = ''
as $$
declare
  v_message fairlease.delivery;
  v_state fairlease.message_state;
  v_items jsonb[] := '{}';
begin
  if p_messages is null then
    return '[]';
  end if;
  foreach v_message in array p_messages loop
    v_state := fairlease.state_of(p_queue, v_message.msg_id, v_message.enqueued_at);
    v_items := array_append(v_items, (
        '{"msg_id":' || v_message.msg_id || ',"read_ct":' || v_message.read_ct
        || ',"enqueued_at":' || to_json(v_message.enqueued_at) || ',"vt":' || to_json(v_message.vt)
        || ',"attempt":' || v_message.read_ct - coalesce(v_state.uncounted, 0)
        || ',"crashes":' || coalesce(v_state.begun_count, 0)
        || ',"closed_count":' || coalesce(v_state.closed_count, 0) || '}'
      )::jsonb || jsonb_build_object('message', v_message.message, 'headers', v_message.headers));
  end loop;
  return to_jsonb(v_items);
end;
$$;

create or replace function fairlease.claim_json(
  p_queue text, p_answer fairlease.claim_answer, p_settled fairlease.outcome[]
)
returns jsonb
language plpgsql volatile
set search_path = ''
as $$
begin
  return (
      '{"status":' || coalesce('"' || p_answer.status || '"', 'null')
      || ',"org":' || coalesce(to_json(p_answer.org)::text, 'null')
      || case when p_answer.cause is null then '' else ',"cause":"' || p_answer.cause || '"' end
      || case when p_answer.retry_after_ms is null then ''
        else ',"retry_after_ms":' || p_answer.retry_after_ms end
      || '}'
    )::jsonb || jsonb_build_object(
      'settled', fairlease.settled_json(p_settled),
      'messages', fairlease.deliveries_json(p_queue, p_answer.messages)
    );
end;
$$;

-- n = 0 settles only: the other arguments of the claim are not looked at.
create or replace function pgmq_public.settle_and_claim(
  queue_name text, holder text, outcomes jsonb, n int, sleep_seconds int, lease_ttl_seconds int,
  max_per_org int, global_cap int, pin_org text default null
)
returns jsonb
language plpgsql volatile security definer
set search_path = ''
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
    v_answer := fairlease.claim_opened(v_ask, v_org);
  end if;
  return fairlease.claim_json(queue_name, v_answer, v_settled);
exception
  when deadlock_detected or serialization_failure then
    raise exception using errcode = 'lock_not_available',
      message = 'settle_and_claim met a lock conflict: call it again';
  when program_limit_exceeded then
    -- An answer holds 256 MB at most. Fewer messages, then; everything above was undone.
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
  fairlease.settled_json(fairlease.outcome[]),
  fairlease.deliveries_json(text, fairlease.delivery[]),
  fairlease.claim_json(text, fairlease.claim_answer, fairlease.outcome[])
from public;

select fairlease.let_workers_call(array['settle_and_claim']);

notify pgrst, 'reload schema';
