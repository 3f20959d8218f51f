-- Whose turn it is: fewest slots held by others first; among equals in byte order after the
-- queue's cursor. The alphabet from its top would starve the end of it.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- False if it was there already, or in another claim's hands.
create or replace function fairlease.move_cursor(p_queue text, p_org text)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  -- Written last and never waited for: another claim's word on the cursor is as good as ours.
  perform from fairlease.cursors c where c.queue = p_queue and c.org <> p_org
    for update skip locked;
  if found then
    update fairlease.cursors c set org = p_org where c.queue = p_queue;
    return true;
  end if;
  return false;
end;
$$;

create or replace function fairlease.start_rotation(p_queue text)
returns fairlease.rotation
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_at fairlease.rotation;
begin
  select c.org into v_at.start_org from fairlease.cursors c where c.queue = p_queue;
  v_at.start_org := coalesce(v_at.start_org, '');
  v_at.at_org := v_at.start_org;
  v_at.wrapped := false;
  v_at.complete := false;
  v_at.seen := false;
  -- However many orgs are paused or at their cap, a claim looks at no more than these.
  v_at.probes_left := 64;
  v_at.found := '{}';
  return v_at;
end;
$$;

-- Take the best of the orgs found so far off the list. Where there is none and the walk ended early,
-- having met only orgs that wait or may not run, the oldest visible message names one more, which
-- has strayed from the walk.
create or replace function fairlease.pick_org(
  p_ask fairlease.claim_ask, inout p_at fairlease.rotation, out p_picked fairlease.gate,
  out p_strayed boolean
)
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_gate fairlease.gate;
begin
  p_strayed := false;
  if cardinality(p_at.found) > 0 then
    foreach v_gate in array p_at.found loop
      if p_picked.org is null or v_gate.others < p_picked.others then
        p_picked := v_gate;
      end if;
    end loop;
    p_at.found := case
      when cardinality(p_at.found) = 1 then '{}'
      else array(select f from unnest(p_at.found) f where f.org <> p_picked.org)
    end;
  elsif not p_at.complete then
    p_strayed := true;
    p_picked := fairlease.org_gate(fairlease.oldest_org(p_ask), p_ask);
  end if;
end;
$$;

create or replace function fairlease.oldest_org(p_ask fairlease.claim_ask)
returns text
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_oldest text;
begin
  execute format('select fairlease.q%s_oldest($1)', p_ask.queue_id)
    into v_oldest using p_ask.asked_at;
  return v_oldest;
end;
$$;

-- Orgs are tried without waiting, from where the walk stands; the first that was busy is waited for
-- when there is no other.
create or replace function fairlease.rotate(
  p_ask fairlease.claim_ask, p_at fairlease.rotation
)
returns fairlease.claim_answer
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_answer fairlease.claim_answer;
  v_picked record;
  v_gate fairlease.gate;
  v_busy text[] := '{}';
  v_strayed text;
  v_tried text[] := '{}';
  v_moved boolean;
begin
  loop
    v_picked := fairlease.pick_org(p_ask, p_at);
    v_gate := v_picked.p_picked;
    if v_picked.p_strayed then
      v_strayed := v_gate.org;
    end if;
    exit when v_gate.org is null or v_gate.org = any (v_tried);
    v_answer := fairlease.serve_org(p_ask, v_gate, false);
    exit when v_answer.status = 'claimed';
    v_tried := array_append(v_tried, v_gate.org);
    p_at := v_picked.p_at;
    if v_answer.cause = 'locked' then
      v_busy := array_append(v_busy, v_gate.org);
    end if;
    p_at := fairlease.walk(p_ask, fairlease.note_answer(p_at, v_answer));
  end loop;
  if cardinality(v_busy) > 0 and v_answer.status <> 'claimed' and p_ask.may_wait then
    v_gate := fairlease.org_gate(v_busy[1], p_ask);
    v_answer := fairlease.serve_org(p_ask, v_gate, true);
    p_at := fairlease.note_answer(p_at, v_answer);
    v_busy := case when v_answer.cause = 'locked' then v_busy else v_busy[2:] end;
  end if;
  if v_answer.status = 'claimed' then
    -- The next walk begins after the org served, or, if that had strayed, after all looked at.
    v_moved := fairlease.move_cursor(
      p_ask.queue, case when v_gate.org = v_strayed then p_at.at_org else v_gate.org end
    );
    return v_answer;
  end if;
  return fairlease.end_rotation(p_ask, p_at, cardinality(v_busy) > 0);
end;
$$;

create or replace function fairlease.walk(p_ask fairlease.claim_ask, p_at fairlease.rotation)
returns fairlease.rotation
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  if not p_at.complete and p_at.probes_left > 0 then
    execute format('select * from fairlease.q%s_probe($1, $2)', p_ask.queue_id)
      into p_at using p_ask, p_at;
  end if;
  return p_at;
end;
$$;

-- A round without success leaves the cursor past all that were looked at, and says why: somebody
-- held what could have been served; or not all were looked at; or nobody may run; or the messages
-- went meanwhile.
create or replace function fairlease.end_rotation(
  p_ask fairlease.claim_ask, p_at fairlease.rotation, p_locked boolean
)
returns fairlease.claim_answer
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_moved boolean;
begin
  if not p_at.complete then
    v_moved := fairlease.move_cursor(p_ask.queue, p_at.at_org);
  end if;
  return case
    when p_locked then fairlease.refusal('no_capacity', 'locked')
    when not p_at.complete then fairlease.refusal('org_capacity', 'probing', 0)
    when p_at.cause is not null
    then fairlease.refusal('org_capacity', p_at.cause, p_at.retry_after_ms)
    else fairlease.refusal('no_demand', null)
  end;
end;
$$;

revoke all on function
  fairlease.move_cursor(text, text),
  fairlease.start_rotation(text),
  fairlease.pick_org(fairlease.claim_ask, fairlease.rotation),
  fairlease.oldest_org(fairlease.claim_ask),
  fairlease.rotate(fairlease.claim_ask, fairlease.rotation),
  fairlease.walk(fairlease.claim_ask, fairlease.rotation),
  fairlease.end_rotation(fairlease.claim_ask, fairlease.rotation, boolean)
from public;

notify pgrst, 'reload schema';
