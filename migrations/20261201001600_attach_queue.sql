-- Making a pgmq queue one that fairlease serves.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- Raises unless every name derived from the queue's is legal, whole and its own: the tables
-- q_<name> and a_<name>, their sequence and indexes, and names of up to 63 bytes with pgmq's longest
-- prefix. pgmq lower-cases table names, so letters outside ASCII would depend on the locale.
create or replace function fairlease.check_queue_name(p_queue text)
returns void
language plpgsql stable
set search_path = '', pg_temp
as $$
begin
  if p_queue is null or p_queue !~ '^[A-Za-z0-9_]+(-[A-Za-z0-9_]+)*$' then
    raise exception 'queue_name % is not allowed: use letters, digits, _ and single hyphens '
      'between them', coalesce(quote_literal(left(p_queue, 80)), 'null');
  elsif octet_length(p_queue) > 47 then
    raise exception 'queue_name % has % bytes: use at most 47', quote_literal(left(p_queue, 80)),
      octet_length(p_queue);
  elsif lower(p_queue collate "C") ~ '_(msg_id_seq\d*|vt_idx\d*|pkey\d*|default)$' then
    raise exception 'queue_name % ends like an index or sequence of another queue: choose another '
      'ending', quote_literal(p_queue);
  end if;
end;
$$;

-- Create the queue where pgmq does not have it; raise where its tables cannot be served.
create or replace function fairlease.ensure_queue(p_queue text)
returns void
language plpgsql
set search_path = '', pg_temp
as $$
declare
  v_table text := lower(('q_' || p_queue) collate "C");
  v_other text;
begin
  select m.queue_name into v_other
  from pgmq.meta m
  where lower(m.queue_name collate "C") = lower(p_queue collate "C") and m.queue_name <> p_queue;
  if found then
    raise exception 'queue_name % would share the table pgmq.% with queue %: use that name',
      quote_literal(p_queue), v_table, quote_literal(v_other);
  end if;
  if not exists (select from pgmq.meta m where m.queue_name = p_queue) then
    if to_regclass(format('pgmq.%I', v_table)) is not null then
      raise exception 'queue_name %: pgmq.% exists and is no queue: rename one of them',
        quote_literal(p_queue), v_table;
    end if;
    perform pgmq.create(p_queue);
  end if;
  if exists (select from pgmq.meta m where m.queue_name = p_queue and m.is_partitioned)
    or exists (
      select from pg_catalog.pg_class c
      where c.oid = to_regclass(format('pgmq.%I', v_table)) and c.relkind <> 'r'
    )
  then
    raise exception 'queue % is partitioned, which fairlease does not serve: move its messages to '
      'a plain queue', quote_literal(p_queue);
  end if;
  if to_regclass(format('pgmq.%I', v_table)) is null then
    raise exception 'queue % has no table pgmq.%: drop the queue and create it again',
      quote_literal(p_queue), v_table;
  end if;
end;
$$;

-- The registry's row as the tables are now.
create or replace function fairlease.register_queue(p_queue text)
returns fairlease.queues
language plpgsql
set search_path = '', pg_temp
as $$
declare
  v_table text := lower(('q_' || p_queue) collate "C");
  v_row fairlease.queues;
begin
  insert into fairlease.queues as q (
    queue, table_name, archive_name, has_headers, has_last_read_at, is_unlogged
  )
  select p_queue, v_table, lower(('a_' || p_queue) collate "C"),
    fairlease.column_exists(v_table, 'headers'), fairlease.column_exists(v_table, 'last_read_at'),
    c.relpersistence = 'u'
  from pg_catalog.pg_class c
  where c.oid = to_regclass(format('pgmq.%I', v_table))
  on conflict (queue) do update set
    has_headers = excluded.has_headers, has_last_read_at = excluded.has_last_read_at,
    is_unlogged = excluded.is_unlogged, attached_at = pg_catalog.now()
  returning * into v_row;
  insert into fairlease.cursors (queue) values (p_queue) on conflict do nothing;
  return v_row;
end;
$$;

-- What the index on org, vt and msg_id is built on, as Postgres prints it.
create or replace function fairlease.org_index_columns(p_queue fairlease.queues)
returns text
language sql immutable
set search_path = '', pg_temp
as $$
  select format('btree (fairlease.org_of(message, %s) COLLATE "C", vt, msg_id)',
    case when p_queue.has_headers then 'headers' else 'NULL::jsonb' end)
$$;

create or replace function fairlease.is_large(p_table regclass)
returns boolean
language sql stable
set search_path = '', pg_temp
as $$
  -- A table that was never analysed has no row count.
  select c.reltuples > 1000000 or pg_relation_size(p_table) > 512 * 1024 * 1024
  from pg_catalog.pg_class c
  where c.oid = p_table
$$;

create or replace function fairlease.has_org_index(p_queue fairlease.queues)
returns boolean
language sql stable
set search_path = '', pg_temp
as $$
  select exists (
    select from pg_catalog.pg_index i
    where i.indrelid = to_regclass(format('pgmq.%I', p_queue.table_name))
      and i.indisvalid and i.indpred is null
      and regexp_replace(pg_get_indexdef(i.indexrelid), '^.*? USING ', '')
        = fairlease.org_index_columns(p_queue)
  )
$$;

-- Take away what the queue is not to have any more: an index of the table's layout before an upgrade
-- or left invalid by a build that was broken off, the index on keys, the resolver's trigger. This
-- wants the table for itself, so it comes before any build: a claim between its look and its read
-- waits for a build to end, and the build must not wait for the claim then.
create or replace function fairlease.clear_away(p_queue fairlease.queues)
returns void
language plpgsql
set search_path = '', pg_temp
as $$
begin
  if not fairlease.has_org_index(p_queue) then
    execute format('drop index if exists pgmq.%I', format('fairlease_q%s_org_idx', p_queue.id));
  end if;
  if not p_queue.unique_keys then
    execute format('drop index if exists pgmq.%I', format('fairlease_q%s_key_idx', p_queue.id));
  end if;
  if p_queue.resolver is null then
    execute format('drop trigger if exists fairlease_org on pgmq.%I', p_queue.table_name);
  end if;
end;
$$;

-- Build it where nobody has. Index names come from the queue's number: none is ever cut to
-- another's. A build locks senders out, so on a large table it is left to the operator.
create or replace function fairlease.index_orgs(p_queue fairlease.queues)
returns void
language plpgsql
set search_path = '', pg_temp
as $$
declare
  v_table regclass := to_regclass(format('pgmq.%I', p_queue.table_name));
  v_columns text := fairlease.org_index_columns(p_queue);
begin
  if fairlease.has_org_index(p_queue) then
    return;
  end if;
  if fairlease.is_large(v_table) then
    raise exception 'queue % has millions of rows, and building its index would lock senders out: '
      'run this first, outside a transaction: create index concurrently on % using %',
      quote_literal(p_queue.queue), v_table, v_columns;
  end if;
  execute format('create index %I on %s using %s',
    format('fairlease_q%s_org_idx', p_queue.id), v_table, v_columns);
end;
$$;

create or replace function fairlease.index_queue(p_queue fairlease.queues)
returns void
language plpgsql
set search_path = '', pg_temp
as $$
begin
  perform fairlease.index_orgs(p_queue);
  -- pgmq makes one; the claim finds the oldest visible message by it.
  if not exists (
    select from pg_catalog.pg_index i
    where i.indrelid = to_regclass(format('pgmq.%I', p_queue.table_name))
      and i.indisvalid and i.indpred is null and pg_get_indexdef(i.indexrelid, 1, false) = 'vt'
  ) then
    execute format('create index %I on pgmq.%I (vt)',
      format('fairlease_q%s_vt_idx', p_queue.id), p_queue.table_name);
  end if;
  if p_queue.unique_keys then
    execute format(
      'create unique index if not exists %I on pgmq.%I (md5(message ->> ''key'')) '
      'where (message ->> ''key'') is not null',
      format('fairlease_q%s_key_idx', p_queue.id), p_queue.table_name
    );
  end if;
  -- Every message is updated once or more and then deleted: vacuum must keep up with that.
  execute format(
    'alter table pgmq.%I set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, '
    'autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.05, '
    'autovacuum_vacuum_cost_delay = 0)', p_queue.table_name
  );
end;
$$;

create or replace function fairlease.check_resolver(p_resolver regprocedure)
returns void
language plpgsql stable
set search_path = '', pg_temp
as $$
begin
  if p_resolver is not null and not exists (
    select from pg_catalog.pg_proc p
    where p.oid = p_resolver and p.prorettype = 'text'::regtype and not p.proretset
      and array(select t from unnest(p.proargtypes) t)
        in (array['jsonb'::regtype::oid], array['jsonb'::regtype::oid, 'jsonb'::regtype::oid])
  ) then
    raise exception 'resolver % must take (message jsonb) or (message jsonb, headers jsonb) and '
      'return text', p_resolver;
  end if;
end;
$$;

-- A feature that needs a function per queue adds a make_<verb>(fairlease.queues).
create or replace function fairlease.make_queue_functions(p_queue fairlease.queues)
returns void
language plpgsql
set search_path = '', pg_temp
as $$
declare
  v_make text;
begin
  for v_make in
    select p.proname
    from pg_catalog.pg_proc p
    where p.pronamespace = 'fairlease'::regnamespace and p.proname like 'make\_%'
      and p.pronargs = 1 and p.proargtypes[0] = 'fairlease.queues'::regtype
      and p.proname <> 'make_queue_functions'
    order by p.proname
  loop
    execute format('select fairlease.%I($1)', v_make) using p_queue;
  end loop;
end;
$$;

-- To be run by every migration that adds or changes a make_<verb>: queues that were attached before
-- it would lack the function, and their settles would come to nothing.
create or replace function fairlease.remake_queue_functions()
returns void
language plpgsql security definer
set search_path = '', pg_temp
set client_min_messages = warning
as $$
declare
  v_queue fairlease.queues;
begin
  -- Nobody else makes them at the same time.
  perform pg_advisory_xact_lock(hashtextextended('fairlease.attach', 0));
  for v_queue in
    select q.* from fairlease.queues q
    where to_regclass(format('pgmq.%I', q.table_name)) is not null
    order by q.id
  loop
    perform fairlease.make_queue_functions(v_queue);
  end loop;
end;
$$;

-- Runs as its owner, like the calls that will use what it makes, whoever attaches.
-- Idempotent. A null leaves what an earlier call decided, or the default. Returns
-- {"queue", "id", "warnings"}; the warnings are raised as well.
create or replace function fairlease.attach_queue(
  queue_name text, on_success text default null, max_attempts int default null,
  retention interval default null, unique_keys boolean default null,
  resolver regprocedure default null, resolver_overrides boolean default null
)
returns jsonb
language plpgsql security definer
set search_path = '', pg_temp
set client_min_messages = warning
as $$
declare
  v_queue fairlease.queues;
  v_warnings text[] := '{}';
begin
  perform fairlease.check_queue_name(queue_name);
  perform pg_advisory_xact_lock(hashtextextended('fairlease.attach', 0));
  perform fairlease.ensure_queue(queue_name);
  v_queue := fairlease.register_queue(queue_name);
  update fairlease.queues q set
    on_success = coalesce(attach_queue.on_success, q.on_success),
    max_attempts = coalesce(attach_queue.max_attempts, q.max_attempts),
    retention = coalesce(attach_queue.retention, q.retention),
    unique_keys = coalesce(attach_queue.unique_keys, q.unique_keys),
    resolver = coalesce(attach_queue.resolver, q.resolver),
    resolver_overrides = coalesce(attach_queue.resolver_overrides, q.resolver_overrides)
  where q.id = v_queue.id
  returning q.* into v_queue;
  perform fairlease.check_resolver(v_queue.resolver);
  perform fairlease.clear_away(v_queue);
  perform fairlease.index_queue(v_queue);
  perform fairlease.make_queue_functions(v_queue);
  if v_queue.is_unlogged then
    v_warnings := array_append(v_warnings,
      format('queue %L is unlogged: a crash of the server loses its messages', queue_name));
    raise warning '%', v_warnings[1];
  end if;
  return jsonb_build_object(
    'queue', v_queue.queue, 'id', v_queue.id, 'warnings', to_jsonb(v_warnings)
  );
end;
$$;

-- Undo all that attaching did to the queue's tables. Messages stay, and so does what is known of
-- them. False if the queue was not attached.
create or replace function fairlease.detach_queue(queue_name text)
returns boolean
language plpgsql security definer
set search_path = '', pg_temp
set client_min_messages = warning
as $$
declare
  v_queue fairlease.queues;
  v_name text;
begin
  perform pg_advisory_xact_lock(hashtextextended('fairlease.attach', 0));
  delete from fairlease.queues q where q.queue = queue_name returning q.* into v_queue;
  if not found then
    return false;
  end if;
  for v_name in
    select p.oid::regprocedure::text
    from pg_catalog.pg_proc p
    where p.pronamespace = 'fairlease'::regnamespace
      and p.proname ~ format('^q%s_', v_queue.id)
  loop
    execute format('drop function %s', v_name);
  end loop;
  execute format('drop index if exists pgmq.%I, pgmq.%I, pgmq.%I',
    format('fairlease_q%s_org_idx', v_queue.id), format('fairlease_q%s_key_idx', v_queue.id),
    format('fairlease_q%s_vt_idx', v_queue.id));
  if to_regclass(format('pgmq.%I', v_queue.table_name)) is not null then
    execute format('drop trigger if exists fairlease_org on pgmq.%I', v_queue.table_name);
  end if;
  return true;
end;
$$;

revoke all on function
  fairlease.check_queue_name(text),
  fairlease.ensure_queue(text),
  fairlease.register_queue(text),
  fairlease.org_index_columns(fairlease.queues),
  fairlease.is_large(regclass),
  fairlease.has_org_index(fairlease.queues),
  fairlease.clear_away(fairlease.queues),
  fairlease.check_resolver(regprocedure),
  fairlease.index_orgs(fairlease.queues),
  fairlease.index_queue(fairlease.queues),
  fairlease.detach_queue(text),
  fairlease.make_queue_functions(fairlease.queues),
  fairlease.remake_queue_functions(),
  fairlease.attach_queue(text, text, int, interval, boolean, regprocedure, boolean)
from public;

notify pgrst, 'reload schema';
