-- The inbox: effects that happen at most once per key, whatever is delivered again.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

create table if not exists fairlease.inbox (
  queue text not null,
  key text collate "C" not null,
  token text,
  taken_at timestamptz not null,
  primary key (queue, key)
);
create index if not exists inbox_taken_at_idx on fairlease.inbox (taken_at);
comment on table fairlease.inbox is 'Keys of effects that were begun; kept for the retention of their queue, or 30 days.';
comment on column fairlease.inbox.token is 'Who took it: the same call repeated is answered the same.';

-- True for the first call with the key whose transaction commits; a second one waits for the first
-- to end. With a token, the one who took the key hears true again: an answer may have been lost.
create or replace function pgmq_public.once(queue_name text, key text, token text default null)
returns boolean
language plpgsql volatile security definer
set search_path = '', pg_temp
set jit = off
as $$
#variable_conflict use_column
begin
  if coalesce(once.key, '') = '' or octet_length(once.key) > 512 then
    raise exception 'key must have 1 to 512 bytes, got %: name the effect, as in "charge:42"',
      coalesce(octet_length(once.key)::text, 'null');
  elsif octet_length(once.token) > 64 then
    raise exception 'token must have at most 64 bytes, got %', octet_length(once.token);
  end if;
  perform fairlease.attached(queue_name);
  insert into fairlease.inbox (queue, key, token, taken_at)
  values (queue_name, once.key, once.token, fairlease.now_())
  on conflict do nothing;
  return found or exists (
    select from fairlease.inbox i
    where i.queue = queue_name and i.key = once.key and i.token = once.token
  );
exception
  when deadlock_detected or serialization_failure then
    raise exception using errcode = 'lock_not_available',
      message = 'once met a lock conflict: call it again';
end;
$$;

select fairlease.let_workers_call(array['once']);

notify pgrst, 'reload schema';
