-- Taking a seat and an ordinal, each by one rule: number `s` may be taken only if `s` plus the live
-- ones above it is at most the cap, counted after `s` is locked. So a cap that was lowered, or two
-- callers with different caps, never leave more live than the taker's own cap allows.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- Lock the lowest free seat; null where the rule forbids it or all free ones are busy.
create or replace function fairlease.lock_free_seat(p_ask fairlease.claim_ask)
returns int
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_seat int;
  v_above int;
  v_dead int[];
begin
  select s.seat into v_seat
  from fairlease.seats s
  where s.seat <= p_ask.global_cap
    and (s.holder is null or s.expires_at <= p_ask.asked_at)
  order by s.seat
  limit 1
  for update skip locked;
  if not found then
    return null;
  end if;
  select count(*) into v_above
  from fairlease.seats s
  where s.seat > v_seat and s.holder <> p_ask.holder;
  if v_seat + v_above > p_ask.global_cap then
    -- A lapsed row that is locked may be under renewal by one who read the clock in time: it counts
    -- as live. One that can be locked stays locked until we commit, so that nobody renews it.
    v_dead := array(
      select s.seat
      from fairlease.seats s
      where s.seat > v_seat and s.expires_at <= p_ask.asked_at
      for update skip locked
    );
    select count(*) into v_above
    from fairlease.seats s
    where s.seat > v_seat and s.holder <> p_ask.holder and s.seat <> all (v_dead);
  end if;
  -- A higher free seat would fail as well: seat + live above it never falls as seats rise.
  return case when v_seat + v_above <= p_ask.global_cap then v_seat end;
end;
$$;

create or replace function fairlease.fleet_is_full(p_ask fairlease.claim_ask)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  return (
    select count(*) >= least(p_ask.global_cap, 1024)
    from fairlease.seats s
    where s.holder is not null and s.expires_at > p_ask.asked_at and s.holder <> p_ask.holder
  );
end;
$$;

-- Clear the lapsed row that bears an ordinal; false if somebody holds it. Never waits.
create or replace function fairlease.clear_lapsed_ordinal(
  p_ask fairlease.claim_ask, p_org text, p_ordinal int
)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_seat int;
begin
  select s.seat into v_seat
  from fairlease.seats s
  where s.org = p_org and s.ordinal = p_ordinal
    and (s.expires_at <= p_ask.asked_at or s.holder = p_ask.holder)
  for update skip locked;
  if found then
    perform fairlease.vacate(v_seat, 'repointed', p_ask.asked_at);
  end if;
  return v_seat is not null;
end;
$$;

-- The lowest ordinal that the org's cap permits; null if none. The caller holds the org's lock.
create or replace function fairlease.take_ordinal(
  p_ask fairlease.claim_ask, p_org text, p_cap int
)
returns int
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_live int[];
  v_borne int[];
  v_dead int[];
  v_above int;
begin
  if not exists (select from fairlease.seats s where s.org = p_org) then
    return 1;
  end if;
  -- As with seats: what has lapsed is free only if its row can be locked.
  v_dead := array(
    select s.ordinal
    from fairlease.seats s
    where s.org = p_org and s.expires_at <= p_ask.asked_at and s.holder <> p_ask.holder
    for update skip locked
  );
  select array_agg(s.ordinal)
      filter (where s.holder <> p_ask.holder and s.ordinal <> all (v_dead)),
    array_agg(s.ordinal)
  into v_live, v_borne
  from fairlease.seats s
  where s.org = p_org;
  for v_ordinal in 1 .. least(p_cap, 1024) loop
    continue when v_ordinal = any (v_live);
    select count(*) into v_above from unnest(v_live) l where l > v_ordinal;
    exit when v_ordinal + v_above > p_cap;
    if v_ordinal <> all (v_borne) or fairlease.clear_lapsed_ordinal(p_ask, p_org, v_ordinal) then
      return v_ordinal;
    end if;
  end loop;
  return null;
end;
$$;

-- Make the seat the holder's slot for the org; its former seat, if another, becomes free.
create or replace function fairlease.seat_holder(
  p_ask fairlease.claim_ask, p_org text, p_ordinal int
)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_logged boolean;
  v_stays boolean := coalesce(
    (p_ask.own_seat, p_ask.own_queue, p_ask.own_org) = (p_ask.seat, p_ask.queue, p_org), false
  );
begin
  if not v_stays then
    if p_ask.own_seat <> p_ask.seat then
      perform fairlease.vacate(p_ask.own_seat, 'repointed', p_ask.asked_at);
    end if;
    v_logged := fairlease.log_lease(p_ask.seat, 'repointed', p_ask.asked_at);
  end if;
  update fairlease.seats s
  set holder = p_ask.holder, queue = p_ask.queue, org = p_org, ordinal = p_ordinal,
    expires_at = p_ask.asked_at + make_interval(secs => p_ask.lease_ttl_seconds),
    taken_at = case when v_stays then s.taken_at else p_ask.asked_at end,
    claims = case when v_stays then s.claims + 1 else 1 end
  where s.seat = p_ask.seat;
  return found;
end;
$$;

revoke all on function
  fairlease.lock_free_seat(fairlease.claim_ask),
  fairlease.fleet_is_full(fairlease.claim_ask),
  fairlease.clear_lapsed_ordinal(fairlease.claim_ask, text, int),
  fairlease.take_ordinal(fairlease.claim_ask, text, int),
  fairlease.seat_holder(fairlease.claim_ask, text, int)
from public;

notify pgrst, 'reload schema';
