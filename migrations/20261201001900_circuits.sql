-- An org that met a rate limit is left alone for a while, by the whole fleet; then one message is
-- let through, and what becomes of it decides.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- A report is a trip if its delivery was claimed after the circuit last opened: of sixteen answers
-- to one incident the first trips, the others extend to their own time at most. Trips double up to
-- a day and are forgotten after a quiet day. The caller holds the row's lock.
create or replace function fairlease.report_limit(
  p_org text, p_is_trip boolean, p_limit_ms numeric, p_reason text, p_now timestamptz
)
returns void
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_day constant numeric := 86400000;
  v_circuit fairlease.circuits;
begin
  select * into v_circuit from fairlease.circuits c where c.org = p_org;
  if not p_is_trip then
    update fairlease.circuits c
    set open_until = greatest(c.open_until, p_now + fairlease.of_ms(least(p_limit_ms, v_day)))
    where c.org = p_org and p_limit_ms is not null;
    return;
  end if;
  v_circuit.trips := 1 + case
    when greatest(v_circuit.opened_at, v_circuit.open_until, v_circuit.closed_at)
      > p_now - interval '1 day'
    then v_circuit.trips
    else 0
  end;
  update fairlease.circuits c
  set opened_at = p_now, trips = v_circuit.trips, reason = p_reason, closed_at = null,
    open_until = p_now + fairlease.of_ms(
      least(coalesce(p_limit_ms, 60000) * 2::numeric ^ least(v_circuit.trips - 1, 30), v_day)
    ),
    probe_queue = null, probe_id = null, probe_ct = null, probe_until = null
  where c.org = p_org;
end;
$$;

create or replace function fairlease.of_ms(p_milliseconds numeric)
returns interval
language sql immutable parallel safe
set search_path = '', pg_temp
as $$ select make_interval(secs => (p_milliseconds / 1000)::float8) $$;

-- Only the delivery that a half-open circuit let through decides: it closes the circuit, or frees
-- the place for another.
create or replace function fairlease.settle_probe(
  p_queue text, p_outcome fairlease.outcome, p_now timestamptz
)
returns void
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_closes boolean := p_outcome.verb in ('done', 'retry', 'dead');
begin
  update fairlease.circuits c
  set open_until = case when v_closes then null else c.open_until end,
    closed_at = case when v_closes then p_now else c.closed_at end,
    probe_queue = null, probe_id = null, probe_ct = null, probe_until = null
  where c.probe_queue = p_queue and c.probe_id = p_outcome.id and c.probe_ct = p_outcome.ct;
end;
$$;

create or replace function fairlease.is_trip(p_queue text, p_outcome fairlease.outcome)
returns boolean
language plpgsql stable
set search_path = '', pg_temp
as $$
declare
  v_circuit fairlease.circuits;
begin
  select * into v_circuit from fairlease.circuits c where c.org = p_outcome.org;
  return v_circuit.opened_at is null or p_outcome.claimed_at > v_circuit.opened_at
    or (v_circuit.probe_queue, v_circuit.probe_id, v_circuit.probe_ct)
      is not distinct from (p_queue, p_outcome.id, p_outcome.ct);
end;
$$;

-- What the settled deliveries say about their orgs' circuits, whose rows are locked.
create or replace function fairlease.tell_circuits(
  p_queue text, p_outcomes fairlease.outcome[], p_now timestamptz
)
returns void
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_outcome fairlease.outcome;
begin
  foreach v_outcome in array p_outcomes loop
    continue when v_outcome.result <> 'applied';
    if v_outcome.limited then
      perform fairlease.report_limit(
        v_outcome.org,
        fairlease.is_trip(p_queue, v_outcome),
        v_outcome.limit_ms, v_outcome.limit_reason, p_now
      );
    else
      perform fairlease.settle_probe(p_queue, v_outcome, p_now);
    end if;
  end loop;
end;
$$;

-- Whether the rows of any org have to do with these outcomes or with the org to be claimed next: its
-- next starts will be charged, its circuit is open, or waits for one of these deliveries.
create or replace function fairlease.concerns_orgs(
  p_queue text, p_outcomes fairlease.outcome[], p_pin_org text
)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  if p_pin_org is not null then
    if exists (
      select from fairlease.org_limits l
      where l.org = p_pin_org and l.starts_per_minute is not null
    ) then
      return true;
    end if;
  end if;
  -- Nearly always no circuit is open at all.
  if not exists (select from fairlease.circuits c where c.open_until is not null) then
    return false;
  end if;
  return exists (
      select from fairlease.circuits c where c.org = p_pin_org and c.open_until is not null
    )
    or exists (
      select from fairlease.circuits c
      join unnest(p_outcomes) o on o.id = c.probe_id
      where c.probe_queue = p_queue
    );
end;
$$;

-- Lock those rows in byte order: limits first, then circuits.
create or replace function fairlease.lock_orgs_to_settle(
  p_queue fairlease.queues, p_outcomes fairlease.outcome[], p_pin_org text
)
returns void
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_limited bigint[] := array(select o.id from unnest(p_outcomes) o where o.limited);
  v_orgs text[] := '{}';
begin
  if cardinality(v_limited) > 0 then
    execute format('select fairlease.q%s_orgs($1)', p_queue.id) into v_orgs using v_limited;
    insert into fairlease.circuits (org)
    select o from unnest(v_orgs) o order by o collate "C"
    on conflict do nothing;
  end if;
  perform from fairlease.org_limits l
    where l.org = p_pin_org and l.starts_per_minute is not null
    for update;
  perform from fairlease.circuits c
    where c.org = any (v_orgs) or c.org = p_pin_org and c.open_until is not null
      or c.probe_queue = p_queue.queue and c.probe_id in (select o.id from unnest(p_outcomes) o)
    order by c.org
    for update;
end;
$$;

-- For operators: leave an org alone for a while, or let it run again.
create or replace function fairlease.open_circuit(org text, duration interval, reason text default null)
returns void
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_now timestamptz := fairlease.now_();
begin
  insert into fairlease.circuits as c (org, opened_at, open_until, trips, reason)
  values (open_circuit.org, v_now, v_now + duration, 1, open_circuit.reason)
  on conflict on constraint circuits_pkey do update set
    opened_at = excluded.opened_at, open_until = excluded.open_until, reason = excluded.reason,
    closed_at = null, probe_queue = null, probe_id = null, probe_ct = null, probe_until = null;
end;
$$;

-- False if it was not open.
create or replace function fairlease.close_circuit(org text)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  update fairlease.circuits c
  set open_until = null, closed_at = fairlease.now_(), trips = 0,
    probe_queue = null, probe_id = null, probe_ct = null, probe_until = null
  where c.org = fairlease.fold_org(close_circuit.org) and c.open_until is not null;
  return found;
end;
$$;

revoke all on function
  fairlease.report_limit(text, boolean, numeric, text, timestamptz),
  fairlease.of_ms(numeric),
  fairlease.settle_probe(text, fairlease.outcome, timestamptz),
  fairlease.is_trip(text, fairlease.outcome),
  fairlease.tell_circuits(text, fairlease.outcome[], timestamptz),
  fairlease.concerns_orgs(text, fairlease.outcome[], text),
  fairlease.lock_orgs_to_settle(fairlease.queues, fairlease.outcome[], text),
  fairlease.open_circuit(text, interval, text),
  fairlease.close_circuit(text)
from public;

notify pgrst, 'reload schema';
