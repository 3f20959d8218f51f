-- The values that the steps of a claim hand to each other.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

do $$
begin
  if pg_catalog.to_regtype('fairlease.delivery') is null then
    create type fairlease.delivery as (
      msg_id bigint, read_ct int, enqueued_at timestamptz, vt timestamptz,
      message jsonb, headers jsonb
    );
  end if;
  -- What is asked for. `own_*` is the slot that the holder has, null without one; `seat` where it
  -- will sit; `alone` false where another claim of the same holder is under way.
  if pg_catalog.to_regtype('fairlease.claim_ask') is null then
    create type fairlease.claim_ask as (
      queue_id int, queue text, holder text, sleep_seconds int, n int, lease_ttl_seconds int,
      max_per_org int, global_cap int, pinned boolean, may_wait boolean, asked_at timestamptz,
      own_seat int, own_queue text, own_org text collate "C", own_ordinal int, seat int, alone boolean
    );
  end if;
  if pg_catalog.to_regtype('fairlease.claim_answer') is null then
    create type fairlease.claim_answer as (
      status text, cause text, retry_after_ms bigint, org text, messages fairlease.delivery[]
    );
  end if;
  -- Whether an org may run now: `cause` says why not, `room` how many messages it may start,
  -- `ordinal` which of its slots is the holder's.
  if pg_catalog.to_regtype('fairlease.gate') is null then
    create type fairlease.gate as (
      org text collate "C", cause text, retry_after_ms bigint, org_cap int, others int, room int,
      guarded boolean, half_open boolean, ordinal int
    );
  end if;
  -- Where a walk over the orgs of a queue stands, and what it has met; `seen`: visible work.
  if pg_catalog.to_regtype('fairlease.rotation') is null then
    create type fairlease.rotation as (
      start_org text collate "C", at_org text collate "C", wrapped boolean, complete boolean,
      probes_left int, seen boolean, cause text, retry_after_ms bigint, found fairlease.gate[]
    );
  end if;
end;
$$;

notify pgrst, 'reload schema';
