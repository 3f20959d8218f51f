-- Whether an org may run: slots, pause, rate, circuit; and the locks that make the answer hold.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

create or replace function fairlease.milliseconds(p_interval interval)
returns bigint
language sql immutable parallel safe
set search_path = '', pg_temp
as $$ select greatest(0, ceil(extract(epoch from p_interval) * 1000))::bigint $$;

-- GCRA in exact arithmetic: time is measured in seconds times the rate, so one start is 60 whatever
-- the rate, and nothing is ever divided or rounded.
create or replace function fairlease.arrival_time(p_limits fairlease.org_limits, p_now timestamptz)
returns numeric
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
begin
  return greatest(extract(epoch from p_now) * p_limits.starts_per_minute, p_limits.tat);
end;
$$;

-- How many starts may come now, and what of the next has been saved up.
create or replace function fairlease.tokens(p_limits fairlease.org_limits, p_now timestamptz)
returns numeric
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
begin
  return p_limits.burst - (
    fairlease.arrival_time(p_limits, p_now)
      - extract(epoch from p_now) * p_limits.starts_per_minute
  ) / 60;
end;
$$;

-- A holder stays within the cap where its ordinal does; above it a pinned one drains.
create or replace function fairlease.fits_org(
  p_ask fairlease.claim_ask, p_org text, p_cap int, p_others int
)
returns boolean
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
begin
  return case
    when p_ask.own_org = p_org and p_ask.own_ordinal <= p_cap then true
    when p_ask.own_org = p_org and p_ask.pinned then false
    else p_others < p_cap
  end;
end;
$$;

-- Most orgs have neither a rate nor a circuit: theirs is one statement and no more.
create or replace function fairlease.org_gate(p_org text, p_ask fairlease.claim_ask)
returns fairlease.gate
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_gate fairlease.gate;
  v_limits fairlease.org_limits;
  v_circuit fairlease.circuits;
begin
  select p_org, null, null, coalesce(l.max_per_org, p_ask.max_per_org), (
      select count(*)
      from fairlease.seats s
      where s.org = p_org and s.expires_at > p_ask.asked_at and s.holder <> p_ask.holder
    ), p_ask.n, l.org is not null or c.open_until is not null, false,
    case when p_ask.own_org = p_org then p_ask.own_ordinal end
  into v_gate
  from (values (p_org)) o (org)
  left join fairlease.org_limits l on l.org = o.org
  left join fairlease.circuits c on c.org = o.org;
  if v_gate.guarded then
    select * into v_limits from fairlease.org_limits l where l.org = p_org;
    select * into v_circuit from fairlease.circuits c where c.org = p_org;
    v_gate := fairlease.guard_org(v_gate, v_limits, v_circuit, p_ask.asked_at);
  end if;
  if v_gate.cause is null or v_gate.cause = 'tokens' then
    if not fairlease.fits_org(p_ask, p_org, v_gate.org_cap, v_gate.others) then
      v_gate.cause := 'org_limit';
      v_gate.retry_after_ms := null;
    end if;
  end if;
  return v_gate;
end;
$$;

-- Pause, then circuit, then rate. `guarded` is left where a start must be charged.
create or replace function fairlease.guard_org(
  p_gate fairlease.gate, p_limits fairlease.org_limits, p_circuit fairlease.circuits,
  p_now timestamptz
)
returns fairlease.gate
language plpgsql immutable
set search_path = '', pg_temp
as $$
declare
  v_until timestamptz := greatest(
    p_circuit.open_until, case when p_circuit.open_until <= p_now then p_circuit.probe_until end
  );
  v_tokens numeric;
begin
  p_gate.half_open := coalesce(p_circuit.open_until <= p_now, false);
  p_gate.guarded := p_gate.half_open or p_limits.starts_per_minute is not null;
  if p_limits.paused then
    p_gate.cause := 'paused';
    return p_gate;
  elsif v_until > p_now then
    p_gate.cause := 'circuit';
    p_gate.retry_after_ms := fairlease.milliseconds(v_until - p_now);
    return p_gate;
  end if;
  if p_limits.starts_per_minute is not null then
    v_tokens := fairlease.tokens(p_limits, p_now);
    p_gate.room := least(p_gate.room, floor(v_tokens));
    if v_tokens < 1 then
      p_gate.cause := 'tokens';
      -- Ten years: a debt at an unusual rate may last longer than a bigint counts.
      p_gate.retry_after_ms := least(
        ceil((1 - v_tokens) * 60000 / p_limits.starts_per_minute), 315576000000
      );
    end if;
  end if;
  if p_gate.half_open then
    p_gate.room := least(p_gate.room, 1);
  end if;
  return p_gate;
end;
$$;

-- The lock under which an org's ordinals are given out: tried, or waited for, for 50 ms at most. A
-- longer wait would leave the time of asking behind, and with it the lease and the visibility
-- timeout that count from there.
create or replace function fairlease.lock_ordinals(p_org text)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  return pg_try_advisory_xact_lock(hashtextextended(p_org, 1733));
end;
$$;

create or replace function fairlease.await_ordinals(p_org text)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
set lock_timeout = '50ms'
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended(p_org, 1733));
  return true;
exception when lock_not_available or deadlock_detected then
  return false;
end;
$$;

-- The rows that charge a start: limits, then circuit. False if busy; the same two ways.
create or replace function fairlease.lock_org(p_org text)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_rows int;
  v_locked int;
begin
  select count(*) into v_rows from (
    select from fairlease.org_limits l where l.org = p_org
    union all
    select from fairlease.circuits c where c.org = p_org
  ) r;
  perform from fairlease.org_limits l where l.org = p_org for update skip locked;
  get diagnostics v_locked = row_count;
  v_rows := v_rows - v_locked;
  perform from fairlease.circuits c where c.org = p_org for update skip locked;
  get diagnostics v_locked = row_count;
  return v_rows <= v_locked;
end;
$$;

create or replace function fairlease.await_org(p_org text)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
set lock_timeout = '50ms'
as $$
begin
  perform from fairlease.org_limits l where l.org = p_org for update;
  perform from fairlease.circuits c where c.org = p_org for update;
  return true;
exception when lock_not_available or deadlock_detected then
  return false;
end;
$$;

-- Book the starts of an org whose rows are locked; a half-open circuit books the one that decides.
create or replace function fairlease.charge_org(
  p_ask fairlease.claim_ask, p_gate fairlease.gate, p_messages fairlease.delivery[]
)
returns void
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  update fairlease.org_limits l
  set tat = fairlease.arrival_time(l, p_ask.asked_at) + 60 * cardinality(p_messages)
  where l.org = p_gate.org and l.starts_per_minute is not null;
  if p_gate.half_open then
    update fairlease.circuits c
    set probe_queue = p_ask.queue, probe_id = p_messages[1].msg_id,
      probe_ct = p_messages[1].read_ct, probe_until = p_messages[1].vt
    where c.org = p_gate.org;
  end if;
end;
$$;

revoke all on function
  fairlease.milliseconds(interval),
  fairlease.arrival_time(fairlease.org_limits, timestamptz),
  fairlease.tokens(fairlease.org_limits, timestamptz),
  fairlease.org_gate(text, fairlease.claim_ask),
  fairlease.fits_org(fairlease.claim_ask, text, int, int),
  fairlease.guard_org(
    fairlease.gate, fairlease.org_limits, fairlease.circuits, timestamptz
  ),
  fairlease.lock_ordinals(text),
  fairlease.await_ordinals(text),
  fairlease.lock_org(text),
  fairlease.await_org(text),
  fairlease.charge_org(fairlease.claim_ask, fairlease.gate, fairlease.delivery[])
from public;

notify pgrst, 'reload schema';
