-- A release from before pins, heartbeats and settles: seven arguments, rows of a table, one lock for
-- all claims, slots of its own. Where nothing is taken it may answer without a row.
drop function if exists pgmq_public.claim_org_slot_and_read, pgmq_public.renew_org_slot,
  pgmq_public.release_org_slot, pgmq_public.settle_and_claim, pgmq_public.heartbeat_org_slot,
  pgmq_public.send_messages;

create schema older;
create table older.slots (
  holder text primary key, queue text not null, org text not null, expires_at timestamptz not null
);

create function pgmq_public.claim_org_slot_and_read(
  queue_name text, sleep_seconds int, n int, holder text, lease_ttl_seconds int,
  max_per_org int, global_cap int
)
returns table (
  status text, org text, msg_id bigint, read_ct int, enqueued_at timestamptz, vt timestamptz,
  message jsonb
)
language plpgsql security definer set search_path = ''
as $$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_org text;
begin
  perform pg_advisory_xact_lock(hashtext('older.claim'));
  v_now := clock_timestamp();
  delete from older.slots s where s.expires_at <= v_now;
  if global_cap <= (select count(*) from older.slots s where s.holder <> $4) then
    return query select 'no_capacity', null::text, null::bigint, null::int, null::timestamptz,
      null::timestamptz, null::jsonb;
    return;
  end if;
  select q.message ->> 'org' into v_org
  from pgmq.q_skew q
  where q.vt <= v_now and max_per_org > (
    select count(*) from older.slots s where s.org = q.message ->> 'org' and s.holder <> $4
  )
  order by q.msg_id limit 1;
  if v_org is null then
    return;
  end if;
  insert into older.slots values (
    holder, queue_name, v_org, v_now + make_interval(secs => lease_ttl_seconds)
  )
  on conflict (holder) do update set
    queue = excluded.queue, org = excluded.org, expires_at = excluded.expires_at;
  return query
    update pgmq.q_skew m
    set vt = v_now + make_interval(secs => sleep_seconds), read_ct = m.read_ct + 1
    where m.msg_id in (
      select q.msg_id from pgmq.q_skew q
      where q.vt <= v_now and q.message ->> 'org' = v_org
      order by q.msg_id limit n
    )
    returning 'claimed', v_org, m.msg_id, m.read_ct, m.enqueued_at, m.vt, m.message;
end;
$$;

create function pgmq_public.renew_org_slot(queue_name text, holder text, lease_ttl_seconds int)
returns boolean
language sql security definer set search_path = ''
as $$
  with renewed as (
    update older.slots s
    set expires_at = clock_timestamp() + make_interval(secs => $3)
    where s.holder = $2 and s.queue = $1 and s.expires_at > clock_timestamp()
    returning 1
  )
  select exists (select from renewed)
$$;

create function pgmq_public.release_org_slot(queue_name text, holder text)
returns boolean
language sql security definer set search_path = ''
as $$
  with released as (
    delete from older.slots s where s.holder = $2 and s.queue = $1 returning 1
  )
  select exists (select from released)
$$;

revoke all on function pgmq_public.claim_org_slot_and_read, pgmq_public.renew_org_slot,
  pgmq_public.release_org_slot from public;
grant execute on function pgmq_public.claim_org_slot_and_read, pgmq_public.renew_org_slot,
  pgmq_public.release_org_slot to service_role;
