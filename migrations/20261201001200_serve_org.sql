-- Serving one org: its ordinal, its rate and circuit, its messages, the slot.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

create or replace function fairlease.refusal(
  p_status text, p_cause text, p_retry_after_ms bigint default null
)
returns fairlease.claim_answer
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
begin
  return row(p_status, p_cause, p_retry_after_ms, null, null)::fairlease.claim_answer;
end;
$$;

-- Lock what makes an org's gate hold: the ordinals for a holder that does not have one it may keep,
-- the rows that are charged where there are any. The gate comes back with the ordinal, or a cause.
create or replace function fairlease.hold_org(
  p_ask fairlease.claim_ask, p_gate fairlease.gate, p_wait boolean, p_stays boolean
)
returns fairlease.gate
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  if not p_stays and not fairlease.lock_ordinals(p_gate.org) then
    if not p_wait or not fairlease.await_ordinals(p_gate.org) then
      p_gate.cause := 'locked';
      return p_gate;
    end if;
    -- Its cap may have been lowered meanwhile.
    p_gate := fairlease.org_gate(p_gate.org, p_ask);
  end if;
  if p_gate.guarded then
    if not fairlease.lock_org(p_gate.org) and (
      not p_wait or not fairlease.await_org(p_gate.org)
    ) then
      p_gate.cause := 'locked';
      return p_gate;
    end if;
    -- What is charged is looked at again, now that nobody else can charge it.
    p_gate := fairlease.org_gate(p_gate.org, p_ask);
  end if;
  if p_gate.cause is null and not p_stays then
    p_gate.ordinal := fairlease.take_ordinal(p_ask, p_gate.org, p_gate.org_cap);
    if p_gate.ordinal is null then
      p_gate := fairlease.org_gate(p_gate.org, p_ask);
      p_gate.cause := coalesce(p_gate.cause, 'locked');
    end if;
  end if;
  return p_gate;
end;
$$;

-- Status `claimed`, `org_capacity`, `no_demand` (its messages went meanwhile) or `no_capacity` with
-- cause `locked`. A holder that stays where it is takes no lock, so that two holders of one org may
-- top up in the same instant; only a rate or a half-open circuit is charged one by one.
create or replace function fairlease.serve_org(
  p_ask fairlease.claim_ask, p_gate fairlease.gate, p_wait boolean
)
returns fairlease.claim_answer
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_stays boolean := coalesce(p_gate.ordinal <= p_gate.org_cap, false);
  v_messages fairlease.delivery[];
begin
  if p_gate.cause is null and (not v_stays or p_gate.guarded) then
    p_gate := fairlease.hold_org(p_ask, p_gate, p_wait, v_stays);
  end if;
  if p_gate.cause is not null then
    return fairlease.refusal(
      case when p_gate.cause = 'locked' then 'no_capacity' else 'org_capacity' end,
      p_gate.cause, p_gate.retry_after_ms
    );
  end if;
  execute format('select fairlease.q%s_read($1, $2, $3, $4)', p_ask.queue_id)
    into v_messages using p_gate.org, p_gate.room, p_ask.sleep_seconds, p_ask.asked_at;
  if v_messages is null then
    return fairlease.refusal('no_demand', null);
  elsif cardinality(v_messages) = 0 then
    return fairlease.refusal('no_capacity', 'locked');
  end if;
  if not fairlease.seat_holder(p_ask, p_gate.org, p_gate.ordinal) then
    raise exception using errcode = 'lock_not_available', message = 'the seat went: call it again';
  end if;
  if p_gate.guarded then
    perform fairlease.charge_org(p_ask, p_gate, v_messages);
  end if;
  return row('claimed', null, null, p_gate.org, v_messages)::fairlease.claim_answer;
end;
$$;

create or replace function fairlease.org_is_visible(p_ask fairlease.claim_ask, p_org text)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_visible boolean;
begin
  execute format('select fairlease.q%s_visible($1, $2)', p_ask.queue_id)
    into v_visible using p_org, p_ask.asked_at;
  return v_visible;
end;
$$;

revoke all on function
  fairlease.refusal(text, text, bigint),
  fairlease.hold_org(fairlease.claim_ask, fairlease.gate, boolean, boolean),
  fairlease.serve_org(fairlease.claim_ask, fairlease.gate, boolean),
  fairlease.org_is_visible(fairlease.claim_ask, text)
from public;

notify pgrst, 'reload schema';
