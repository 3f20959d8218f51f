-- A claim that knows no pin, over today's allocator: renewals, heartbeats and releases are today's.
create schema hidden;
alter function pgmq_public.claim_org_slot_and_read set schema hidden;
drop function pgmq_public.settle_and_claim;

create function pgmq_public.claim_org_slot_and_read(
  queue_name text, sleep_seconds int, n int, holder text, lease_ttl_seconds int,
  max_per_org int, global_cap int
)
returns table (
  status text, org text, msg_id bigint, read_ct int, enqueued_at timestamptz, vt timestamptz,
  message jsonb
)
language sql security definer set search_path = ''
as $$ select * from hidden.claim_org_slot_and_read($1, $2, $3, $4, $5, $6, $7) $$;

revoke all on function pgmq_public.claim_org_slot_and_read from public;
grant execute on function pgmq_public.claim_org_slot_and_read to service_role;
