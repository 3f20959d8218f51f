-- The claim that workers of any age speak.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- A second overload would answer PGRST203 to everybody; and a return type cannot be replaced.
do $$
declare
  v_old regprocedure;
begin
  for v_old in
    select p.oid::regprocedure
    from pg_catalog.pg_proc p
    where p.pronamespace = 'pgmq_public'::regnamespace
      and p.proname in ('claim_org_slot_and_read', 'renew_org_slot', 'release_org_slot')
  loop
    execute pg_catalog.format('drop function %s', v_old);
  end loop;
  if pg_catalog.to_regtype('pgmq_public.org_slot_row') is null then
    create type pgmq_public.org_slot_row as (
      status text, org text, msg_id bigint, read_ct int, enqueued_at timestamptz, vt timestamptz,
      message jsonb
    );
  end if;
end;
$$;

-- True, or raises. A statement that locks and one that then counts must not see the same snapshot,
-- hence the isolation level.
create or replace function fairlease.check_slot_arguments(p_holder text, p_lease_ttl_seconds int)
returns boolean
language plpgsql stable
set search_path = '', pg_temp
as $$
begin
  if p_holder <> '' and octet_length(p_holder) <= 512 and p_lease_ttl_seconds >= 1
    and current_setting('transaction_isolation') = 'read committed'
  then
    return true;
  elsif current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'the transaction is %: call this in a read committed one',
      current_setting('transaction_isolation');
  elsif coalesce(p_holder, '') = '' then
    raise exception 'holder must not be empty: name the run, as name/host/pid/random';
  elsif octet_length(p_holder) > 512 then
    raise exception 'holder must be at most 512 bytes, got %: shorten it', octet_length(p_holder);
  elsif coalesce(p_lease_ttl_seconds, 0) < 1 then
    raise exception 'lease_ttl_seconds must be 1 or more, got %: pass seconds, such as 60',
      coalesce(p_lease_ttl_seconds::text, 'null');
  end if;
  return true;
end;
$$;

create or replace function fairlease.new_ask(
  p_queue text, p_holder text, p_sleep_seconds int, p_n int, p_lease_ttl_seconds int,
  p_max_per_org int, p_global_cap int, p_pinned boolean, p_may_wait boolean
)
returns fairlease.claim_ask
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
begin
  return row(
    null, p_queue, p_holder, p_sleep_seconds, p_n, p_lease_ttl_seconds, p_max_per_org,
    p_global_cap, p_pinned, p_may_wait, null, null, null, null, null, null, true
  )::fairlease.claim_ask;
end;
$$;

create or replace function fairlease.check_claim_arguments(p_ask fairlease.claim_ask, p_org text)
returns boolean
language plpgsql stable
set search_path = '', pg_temp
as $$
begin
  if fairlease.check_slot_arguments(p_ask.holder, p_ask.lease_ttl_seconds)
    and p_ask.n >= 1 and p_ask.sleep_seconds >= 0 and p_ask.max_per_org is not null
    and p_ask.global_cap is not null and p_org is distinct from ''
  then
    return true;
  elsif coalesce(p_ask.n, 0) < 1 then
    raise exception 'n must be 1 or more, got %: pass how many messages are wanted',
      coalesce(p_ask.n::text, 'null');
  elsif coalesce(p_ask.sleep_seconds, -1) < 0 then
    raise exception 'sleep_seconds must be 0 or more, got %: pass the visibility timeout',
      coalesce(p_ask.sleep_seconds::text, 'null');
  elsif p_ask.max_per_org is null then
    raise exception 'max_per_org must not be null: pass how many slots an org may hold, 0 to stop';
  elsif p_ask.global_cap is null then
    raise exception 'global_cap must not be null: pass how many slots the fleet may hold, 0 to stop';
  elsif p_org = '' then
    raise exception 'pin_org must not be empty: name an org, or leave it out';
  end if;
  return true;
end;
$$;

create or replace function pgmq_public.claim_org_slot_and_read(
  queue_name text, sleep_seconds int, n int, holder text, lease_ttl_seconds int,
  max_per_org int, global_cap int, pin_org text default null
)
returns setof pgmq_public.org_slot_row
language plpgsql volatile security definer
set search_path = '', pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_ask fairlease.claim_ask;
  v_answer fairlease.claim_answer;
  v_message fairlease.delivery;
  v_checked boolean;
begin
  -- PostgREST cuts a set at its max-rows after the function has hidden every row: hence the 100.
  v_ask := fairlease.new_ask(
    queue_name, holder, sleep_seconds, case when n > 100 then 100 else n end, lease_ttl_seconds,
    max_per_org, global_cap, pin_org is not null, true
  );
  v_checked := fairlease.check_claim_arguments(v_ask, pin_org);
  v_ask.queue_id := (fairlease.attached(queue_name)).id;
  v_answer := fairlease.claim(v_ask, fairlease.fold_org(pin_org));
  if v_answer.status <> 'claimed' then
    return next row(v_answer.status, null, null, null, null, null, null)::pgmq_public.org_slot_row;
    return;
  end if;
  foreach v_message in array v_answer.messages loop
    return next row(
      v_answer.status, v_answer.org, v_message.msg_id, v_message.read_ct, v_message.enqueued_at,
      v_message.vt, v_message.message
    )::pgmq_public.org_slot_row;
  end loop;
exception
  when deadlock_detected or serialization_failure then
    raise exception using errcode = 'lock_not_available',
      message = 'claim_org_slot_and_read met a lock conflict: call it again';
  when undefined_table or undefined_function then
    perform fairlease.raise_missing(queue_name, sqlerrm);
end;
$$;

revoke all on function
  fairlease.check_slot_arguments(text, int),
  fairlease.new_ask(text, text, int, int, int, int, int, boolean, boolean),
  fairlease.check_claim_arguments(fairlease.claim_ask, text)
from public;

select fairlease.let_workers_call(array['claim_org_slot_and_read']);

notify pgrst, 'reload schema';
