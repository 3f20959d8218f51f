-- The registry of attached queues, and where each queue's rotation stands.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

create table if not exists fairlease.queues (
  id int generated always as identity primary key,
  queue text not null unique,
  -- pgmq lower-cases table names: two queue names could share a table, two rows here cannot.
  table_name text not null unique,
  archive_name text not null unique,
  has_headers boolean not null,
  has_last_read_at boolean not null,
  is_unlogged boolean not null default false,
  on_success text not null default 'archive' check (on_success in ('archive', 'delete')),
  max_attempts int check (max_attempts >= 1),
  retention interval check (retention > interval '0'),
  unique_keys boolean not null default false,
  resolver regprocedure,
  resolver_overrides boolean not null default false,
  attached_at timestamptz not null default pg_catalog.now()
);
comment on table fairlease.queues is 'Queues that fairlease serves, with what was decided for each.';
comment on column fairlease.queues.retention is 'How long its archive and dead letters are kept; null: for ever.';
comment on column fairlease.queues.max_attempts is 'A retry at or above this many attempts becomes a dead letter; null: the handler decides.';

create table if not exists fairlease.cursors (
  queue text primary key references fairlease.queues (queue) on delete cascade on update cascade,
  org text collate "C" not null default ''
) with (fillfactor = 20);
comment on table fairlease.cursors is 'The org after which the next unpinned claim of a queue looks first.';

-- Raises unless a queue of that name was attached.
create or replace function fairlease.attached(p_queue text)
returns fairlease.queues
language plpgsql stable
set search_path = '', pg_temp
as $$
declare
  v_queue fairlease.queues;
begin
  select * into v_queue from fairlease.queues q where q.queue = p_queue;
  if not found then
    raise exception 'queue_name: no queue % is attached: attach it with '
      '"fairlease queue attach" or select fairlease.attach_queue(...)',
      coalesce(quote_literal(left(p_queue, 60)), 'null');
  end if;
  return v_queue;
end;
$$;

-- Whether its tables went since it was attached.
create or replace function fairlease.queue_is_lost(p_queue text)
returns boolean
language sql stable
set search_path = '', pg_temp
as $$
  select coalesce(bool_or(to_regclass(format('pgmq.%I', q.table_name)) is null), true)
  from fairlease.queues q where q.queue = p_queue
$$;

-- What a call says that missed a table or a function: its queue's, or another one, such as that of
-- a trigger of the database's owner.
create or replace function fairlease.raise_missing(p_queue text, p_error text)
returns void
language plpgsql
set search_path = '', pg_temp
as $$
begin
  -- Raises where it was detached meanwhile.
  perform fairlease.attached(p_queue);
  if fairlease.queue_is_lost(p_queue) then
    raise exception 'queue_name: queue % is gone since it was attached (%): create it, and attach '
      'it again', quote_literal(p_queue), p_error;
  end if;
  raise exception 'queue % is not what it was when it was attached, or a trigger on it misses '
    'something (%): attach it again, or mend the trigger', quote_literal(p_queue), p_error;
end;
$$;

revoke all on function
  fairlease.attached(text),
  fairlease.queue_is_lost(text),
  fairlease.raise_missing(text, text)
from public;

notify pgrst, 'reload schema';
