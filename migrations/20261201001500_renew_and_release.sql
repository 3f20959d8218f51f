-- Keeping a slot, and giving it back.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

create or replace function fairlease.renew(
  p_queue text, p_holder text, p_lease_ttl_seconds int, p_slot fairlease.seats, p_now timestamptz
)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  if p_slot.holder is null or p_slot.queue <> p_queue or p_slot.expires_at <= p_now then
    return false;
  end if;
  update fairlease.seats s
  set expires_at = p_now + make_interval(secs => p_lease_ttl_seconds)
  where s.seat = p_slot.seat;
  return true;
end;
$$;

create or replace function pgmq_public.renew_org_slot(
  queue_name text, holder text, lease_ttl_seconds int
)
returns boolean
language plpgsql volatile security definer
set search_path = '', pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_queue text;
  v_slot fairlease.seats;
  v_checked boolean := fairlease.check_slot_arguments(holder, lease_ttl_seconds);
begin
  v_queue := (fairlease.attached(queue_name)).queue;
  v_slot := fairlease.own_slot(holder);
  return fairlease.renew(v_queue, holder, lease_ttl_seconds, v_slot, fairlease.now_());
exception when deadlock_detected or serialization_failure then
  raise exception using errcode = 'lock_not_available',
    message = 'renew_org_slot met a lock conflict: call it again';
end;
$$;

-- True if there was something to give back, lapsed or not.
create or replace function pgmq_public.release_org_slot(queue_name text, holder text)
returns boolean
language plpgsql volatile security definer
set search_path = '', pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_queue text;
  v_slot fairlease.seats;
  v_checked boolean := fairlease.check_slot_arguments(holder, 1);
begin
  v_queue := (fairlease.attached(queue_name)).queue;
  v_slot := fairlease.own_slot(holder);
  if v_slot.queue is distinct from v_queue then
    return false;
  end if;
  perform fairlease.vacate(v_slot.seat, 'released', fairlease.now_());
  return true;
exception when deadlock_detected or serialization_failure then
  raise exception using errcode = 'lock_not_available',
    message = 'release_org_slot met a lock conflict: call it again';
end;
$$;

revoke all on function fairlease.renew(text, text, int, fairlease.seats, timestamptz) from public;

select fairlease.let_workers_call(array['renew_org_slot', 'release_org_slot']);

notify pgrst, 'reload schema';
