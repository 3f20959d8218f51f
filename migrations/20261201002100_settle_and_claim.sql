-- One round trip for what became of the last messages and for the next ones.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

create or replace function fairlease.settled_json(p_outcomes fairlease.outcome[])
returns jsonb
language sql immutable parallel safe
set search_path = ''
as $$
  select coalesce(jsonb_agg(
    jsonb_build_object('id', o.id, 'result', o.result)
      || case when o.note is null then '{}' else jsonb_build_object('note', o.note) end
    order by o.place
  ), '[]')
  from unnest(p_outcomes) o
$$;

create or replace function fairlease.deliveries_json(
  p_queue text, p_messages fairlease.delivery[]
)
returns jsonb
language sql volatile
set search_path = ''
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'msg_id', m.msg_id, 'read_ct', m.read_ct, 'enqueued_at', m.enqueued_at, 'vt', m.vt,
    'message', m.message, 'headers', m.headers,
    'attempt', m.read_ct - coalesce(s.uncounted, 0), 'crashes', coalesce(s.begun_count, 0),
    'closed_count', coalesce(s.closed_count, 0)
  ) order by m.place), '[]')
  from unnest(p_messages) with ordinality
    m (msg_id, read_ct, enqueued_at, vt, message, headers, place)
  left join fairlease.message_state s
    on s.queue = p_queue and s.msg_id = m.msg_id and s.enqueued_at = m.enqueued_at
$$;

create or replace function fairlease.with_result(p_outcome fairlease.outcome, p_result text)
returns fairlease.outcome
language plpgsql immutable parallel safe
set search_path = ''
as $$
begin
  p_outcome.result := coalesce(p_outcome.result, p_result);
  return p_outcome;
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
  return jsonb_build_object(
    'settled', fairlease.settled_json(p_settled), 'status', p_answer.status, 'org', p_answer.org,
    'messages', fairlease.deliveries_json(p_queue, p_answer.messages)
  ) || jsonb_strip_nulls(jsonb_build_object(
    'cause', p_answer.cause, 'retry_after_ms', p_answer.retry_after_ms
  ));
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
begin
  perform fairlease.require_read_committed();
  v_ask := fairlease.new_ask(
    queue_name, holder, sleep_seconds, case when n > 500 then 500 else n end, lease_ttl_seconds,
    max_per_org, global_cap, pin_org is not null, false
  );
  if n = 0 then
    perform fairlease.check_slot_arguments(holder, 1);
  else
    perform fairlease.check_claim_arguments(v_ask, pin_org);
  end if;
  v_outcomes := fairlease.parse_outcomes(outcomes);
  v_queue := fairlease.attached(queue_name);
  v_ask.queue_id := v_queue.id;
  v_ask := fairlease.open_ask(v_ask);
  v_settled := fairlease.settle(
    v_queue, holder, v_outcomes, case when n > 0 then v_org end, v_ask.asked_at
  );
  if n > 0 then
    v_answer := fairlease.claim_opened(v_ask, v_org);
  end if;
  return fairlease.claim_json(queue_name, v_answer, v_settled);
exception
  when deadlock_detected or serialization_failure then
    raise exception using errcode = 'lock_not_available',
      message = 'settle_and_claim met a lock conflict: call it again';
  when undefined_function then
    -- The messages are there: who hears that they are gone does not settle them again.
    perform fairlease.raise_lost_queue(queue_name, sqlerrm);
  when undefined_table then
    -- Handlers that were in flight when their queue was dropped hear of their messages first.
    if cardinality(v_outcomes) = 0 then
      perform fairlease.raise_lost_queue(queue_name, sqlerrm);
    end if;
    return fairlease.claim_json(queue_name, fairlease.refusal('no_demand', null), array(
      select fairlease.with_result(o, 'gone') from unnest(v_outcomes) o
    ));
end;
$$;

revoke all on function
  fairlease.settled_json(fairlease.outcome[]),
  fairlease.with_result(fairlease.outcome, text),
  fairlease.deliveries_json(text, fairlease.delivery[]),
  fairlease.claim_json(text, fairlease.claim_answer, fairlease.outcome[])
from public;

select fairlease.let_workers_call(array['settle_and_claim']);

notify pgrst, 'reload schema';
