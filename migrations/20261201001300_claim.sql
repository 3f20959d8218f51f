-- One claim: the slot and the seat, then the org that was asked for or the org whose turn it is.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- The holder's slot, locked, and the time of asking. A lapsed slot is never revived: it is cleared,
-- and the holder is as one without.
create or replace function fairlease.open_ask(inout p_ask fairlease.claim_ask)
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_slot fairlease.seats;
begin
  select * into v_slot from fairlease.seats s where s.holder = p_ask.holder for update;
  if v_slot.holder is null then
    p_ask.alone := pg_try_advisory_xact_lock(hashtextextended(p_ask.holder, 1734));
    v_slot := fairlease.own_slot(p_ask.holder);
  end if;
  p_ask.asked_at := fairlease.now_();
  if v_slot.expires_at <= p_ask.asked_at then
    perform fairlease.vacate(v_slot.seat, 'lapsed', p_ask.asked_at);
  elsif v_slot.holder is not null then
    p_ask.own_seat := v_slot.seat;
    p_ask.own_queue := v_slot.queue;
    p_ask.own_org := v_slot.org;
    p_ask.own_ordinal := v_slot.ordinal;
  end if;
end;
$$;

-- The ask after a wait for somebody's lock: a lease or a visibility timeout that counted from before
-- it might be over when the answer arrives.
create or replace function fairlease.refresh_ask(inout p_ask fairlease.claim_ask)
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  if fairlease.now_() > p_ask.asked_at + interval '100 ms' then
    p_ask.own_seat := null;
    p_ask.own_queue := null;
    p_ask.own_org := null;
    p_ask.own_ordinal := null;
    p_ask := fairlease.open_ask(p_ask);
  end if;
end;
$$;

-- The seat to sit on: its own if within the caller's cap. Above it a pinned holder drains, an
-- unpinned one moves down or gives the slot up.
create or replace function fairlease.find_seat(inout p_ask fairlease.claim_ask)
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  if p_ask.own_seat <= p_ask.global_cap then
    p_ask.seat := p_ask.own_seat;
  elsif p_ask.own_seat is null or not p_ask.pinned then
    p_ask.seat := fairlease.lock_free_seat(p_ask);
    if p_ask.seat is null and p_ask.own_seat is not null then
      perform fairlease.vacate(p_ask.own_seat, 'over_cap', p_ask.asked_at);
    end if;
  end if;
end;
$$;

create or replace function fairlease.no_seat(p_ask fairlease.claim_ask)
returns fairlease.claim_answer
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  return fairlease.refusal('no_capacity', case
    when p_ask.own_seat is not null or fairlease.fleet_is_full(p_ask) then 'fleet_full'
    else 'locked'
  end);
end;
$$;

create or replace function fairlease.claim_pinned(p_ask fairlease.claim_ask, p_org text)
returns fairlease.claim_answer
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_answer fairlease.claim_answer;
begin
  -- Who stays reads at once, and reads nothing where there is nothing.
  if p_ask.own_org is distinct from p_org and not fairlease.org_is_visible(p_ask, p_org) then
    return fairlease.refusal('no_demand', null);
  end if;
  p_ask := fairlease.find_seat(p_ask);
  v_answer := case
    when p_ask.seat is null then fairlease.no_seat(p_ask)
    else fairlease.serve_org(p_ask, fairlease.org_gate(p_org, p_ask), p_ask.may_wait)
  end;
  if v_answer.status in ('org_capacity', 'no_capacity')
    and not fairlease.org_is_visible(p_ask, p_org)
  then
    return fairlease.refusal('no_demand', null);
  end if;
  return v_answer;
end;
$$;

create or replace function fairlease.claim_unpinned(p_ask fairlease.claim_ask)
returns fairlease.claim_answer
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_at fairlease.rotation := fairlease.walk(p_ask, fairlease.start_rotation(p_ask.queue));
  v_oldest text;
begin
  -- A walk that met nothing visible may not have gone all the way round.
  if not v_at.seen then
    execute format('select fairlease.q%s_oldest($1)', p_ask.queue_id)
      into v_oldest using p_ask.asked_at;
    if v_oldest is null then
      return fairlease.refusal('no_demand', null);
    end if;
  end if;
  p_ask := fairlease.find_seat(p_ask);
  if p_ask.seat is null then
    return fairlease.no_seat(p_ask);
  end if;
  return fairlease.rotate(p_ask, v_at);
end;
$$;

-- Of an opened ask. A cap of zero is how an operator stops a fleet.
create or replace function fairlease.claim_opened(p_ask fairlease.claim_ask, p_org text)
returns fairlease.claim_answer
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  return case
    when p_ask.global_cap <= 0 or p_ask.max_per_org <= 0
    then fairlease.refusal('no_capacity', 'stopped')
    when not p_ask.alone then fairlease.refusal('no_capacity', 'locked')
    when p_ask.pinned then fairlease.claim_pinned(p_ask, p_org)
    else fairlease.claim_unpinned(p_ask)
  end;
end;
$$;

create or replace function fairlease.claim(p_ask fairlease.claim_ask, p_org text)
returns fairlease.claim_answer
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  -- Before anything is read.
  if p_ask.global_cap <= 0 or p_ask.max_per_org <= 0 then
    return fairlease.refusal('no_capacity', 'stopped');
  end if;
  return fairlease.claim_opened(fairlease.open_ask(p_ask), p_org);
end;
$$;

revoke all on function
  fairlease.open_ask(fairlease.claim_ask),
  fairlease.refresh_ask(fairlease.claim_ask),
  fairlease.find_seat(fairlease.claim_ask),
  fairlease.no_seat(fairlease.claim_ask),
  fairlease.claim_pinned(fairlease.claim_ask, text),
  fairlease.claim_unpinned(fairlease.claim_ask),
  fairlease.claim_opened(fairlease.claim_ask, text),
  fairlease.claim(fairlease.claim_ask, text)
from public;

notify pgrst, 'reload schema';
