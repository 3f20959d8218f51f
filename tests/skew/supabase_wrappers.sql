-- The queue functions of a hosted project, with their names, arguments and callers.
create function pgmq_public.archive(queue_name text, message_id bigint) returns boolean
language sql security definer set search_path = ''
as $$ select pgmq.archive(queue_name => queue_name, msg_id => message_id) $$;

create function pgmq_public.send_batch(
  queue_name text, messages jsonb[], sleep_seconds integer default 0
)
returns setof bigint
language sql security definer set search_path = ''
as $$ select * from pgmq.send_batch(queue_name => queue_name, msgs => messages, delay => sleep_seconds) $$;

revoke all on function pgmq_public.archive, pgmq_public.send_batch from public;
grant execute on function pgmq_public.archive, pgmq_public.send_batch to service_role;
