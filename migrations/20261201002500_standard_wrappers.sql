-- The functions that Supabase puts into pgmq_public, where it has not: same names, same arguments.
-- Where one of that name exists it is left alone. pgmq's upgrades drop its own row type and every
-- function that returns it, so ours return a type of their own.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

do $$
begin
  if pg_catalog.to_regtype('pgmq_public.queue_message') is null then
    create type pgmq_public.queue_message as (
      msg_id bigint, read_ct int, enqueued_at timestamptz, vt timestamptz, message jsonb,
      headers jsonb
    );
  end if;
end;
$$;

create or replace function fairlease.create_wrapper(
  p_name text, p_arguments text, p_returns text, p_body text
)
returns void
language plpgsql
set search_path = '', pg_temp
as $$
begin
  if exists (
    select from pg_catalog.pg_proc p
    where p.pronamespace = 'pgmq_public'::regnamespace and p.proname = p_name
  ) then
    return;
  end if;
  execute format(
    'create function pgmq_public.%I(%s) returns %s language plpgsql volatile security definer '
    'set search_path = '''', pg_temp set jit = off as %L', p_name, p_arguments, p_returns, p_body
  );
  perform fairlease.let_workers_call(array[p_name]);
end;
$$;

select fairlease.create_wrapper(
  'send', 'queue_name text, message jsonb, sleep_seconds integer default 0', 'setof bigint',
  $$begin
  return query select * from pgmq.send(
    queue_name => queue_name, msg => message, delay => sleep_seconds
  );
end;$$
);
select fairlease.create_wrapper(
  'send_batch', 'queue_name text, messages jsonb[], sleep_seconds integer default 0',
  'setof bigint',
  $$begin
  return query select * from pgmq.send_batch(
    queue_name => queue_name, msgs => messages, delay => sleep_seconds
  );
end;$$
);
select fairlease.create_wrapper(
  'read', 'queue_name text, sleep_seconds integer, n integer', 'setof pgmq_public.queue_message',
  $$begin
  if coalesce(n, 0) < 1 then
    raise exception 'n must be 1 or more, got %: pass how many messages are wanted',
      coalesce(n::text, 'null');
  elsif coalesce(sleep_seconds, -1) < 0 then
    raise exception 'sleep_seconds must be 0 or more, got %: pass the visibility timeout',
      coalesce(sleep_seconds::text, 'null');
  end if;
  return query
    select r.msg_id, r.read_ct, r.enqueued_at, r.vt, r.message, nullif(to_jsonb(r) -> 'headers', 'null')
    from pgmq.read(queue_name => queue_name, vt => sleep_seconds, qty => n) r
    where r.msg_id is not null;
end;$$
);
select fairlease.create_wrapper(
  'pop', 'queue_name text', 'setof pgmq_public.queue_message',
  $$begin
  return query
    select r.msg_id, r.read_ct, r.enqueued_at, r.vt, r.message, nullif(to_jsonb(r) -> 'headers', 'null')
    from pgmq.pop(queue_name => queue_name) r
    where r.msg_id is not null;
end;$$
);
select fairlease.create_wrapper(
  'archive', 'queue_name text, message_id bigint', 'boolean',
  $$begin
  return pgmq.archive(queue_name => queue_name, msg_id => message_id);
end;$$
);
select fairlease.create_wrapper(
  'delete', 'queue_name text, message_id bigint', 'boolean',
  $$begin
  return pgmq.delete(queue_name => queue_name, msg_id => message_id);
end;$$
);

revoke all on function fairlease.create_wrapper(text, text, text, text) from public;

notify pgrst, 'reload schema';
