-- SQL text that names a queue's tables is planned at every call when it is built at every call. So
-- each queue has functions of its own, `fairlease.q<id>_<verb>`, made when it is attached, whose
-- plans are kept; the rest calls them by that name.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

create or replace function fairlease.column_exists(p_table text, p_column text)
returns boolean
language sql stable
set search_path = '', pg_temp
as $$
  select exists (
    select from pg_catalog.pg_attribute a
    join pg_catalog.pg_class c on c.oid = a.attrelid
    where c.relnamespace = 'pgmq'::regnamespace and c.relname = p_table
      and a.attname = p_column and a.attnum > 0 and not a.attisdropped
  )
$$;

-- Create one function from a template. {id}: the queue's; {q}, {a}: its tables; {org}, {headers},
-- {read_at}: expressions over its alias m; {columns}: those that both tables have; {touch}: what a
-- read sets besides vt and read_ct; {by_id}: what finds the message i.id; {find}: its p.place.
create or replace function fairlease.make_queue_function(
  p_queue fairlease.queues, p_signature text, p_returns text, p_body text
)
returns void
language plpgsql
set search_path = '', pg_temp
as $$
declare
  v_text text := format(
    'create or replace function fairlease.q{id}_%s returns %s language plpgsql volatile '
    -- A plan made while the queue was empty must be right when it holds a million.
    'set search_path = '''', pg_temp set jit = off set plan_cache_mode = force_generic_plan '
    'set enable_seqscan = off set enable_bitmapscan = off as %L',
    p_signature, p_returns, p_body
  );
  v_org text := case
    when p_queue.has_headers then '(fairlease.org_of(m.message, m.headers) collate "C")'
    else '(fairlease.org_of(m.message, null::jsonb) collate "C")'
  end;
begin
  v_text := replace(v_text, '{find}',
    'cross join lateral (select m.ctid as place from {q} m {by_id}) p');
  -- To an empty queue a walk over a whole index that has the ids somewhere seems as cheap as a
  -- look-up, and the plan is kept. So ids are looked up one by one, never joined nor asked for with
  -- `any`; and by bounds in an order, which only the primary key has.
  v_text := replace(v_text, '{by_id}',
    'where m.msg_id >= i.id and m.msg_id <= i.id order by m.msg_id limit 1');
  v_text := replace(v_text, '{id}', p_queue.id::text);
  v_text := replace(v_text, '{q}', format('pgmq.%I', p_queue.table_name));
  v_text := replace(v_text, '{a}', format('pgmq.%I', p_queue.archive_name));
  v_text := replace(v_text, '{org}', v_org);
  v_text := replace(v_text, '{headers}',
    case when p_queue.has_headers then 'm.headers' else 'null::jsonb' end);
  v_text := replace(v_text, '{read_at}',
    case when p_queue.has_last_read_at then 'm.last_read_at' else 'null::timestamptz' end);
  v_text := replace(v_text, '{touch}',
    case when p_queue.has_last_read_at then ', last_read_at = p_now' else '' end);
  v_text := replace(v_text, '{columns}', (
    select string_agg(c, ', ')
    from unnest(array[
      'msg_id', 'read_ct', 'enqueued_at', 'vt', 'message', 'headers', 'last_read_at'
    ]) c
    where fairlease.column_exists(p_queue.table_name, c)
      and fairlease.column_exists(p_queue.archive_name, c)
  ));
  execute v_text;
  execute replace(format('revoke all on function fairlease.q{id}_%s from public', p_signature),
    '{id}', p_queue.id::text);
end;
$$;

-- The org of the message that has been visible longest; null where nothing is visible.
create or replace function fairlease.make_oldest(p_queue fairlease.queues)
returns void
language sql
set search_path = '', pg_temp
as $make$
  select fairlease.make_queue_function(p_queue, 'oldest(p_now timestamptz)', 'text', $$
declare
  v_org text;
begin
  select {org} into v_org from {q} m where m.vt <= p_now order by m.vt limit 1;
  return v_org;
end;
$$)
$make$;

create or replace function fairlease.make_visible(p_queue fairlease.queues)
returns void
language sql
set search_path = '', pg_temp
as $make$
  select fairlease.make_queue_function(
    p_queue, 'visible(p_org text, p_now timestamptz)', 'boolean', $$
begin
  return exists (select from {q} m where {org} = p_org and m.vt <= p_now);
end;
$$)
$make$;

-- Read as pgmq.read does, but of one org: null where nothing is visible, empty where another reader
-- holds what is. The bounds are pairs and not an equality with the org:
-- only the index on (org, vt, msg_id) then gives the order without a sort, whatever the statistics.
create or replace function fairlease.make_read(p_queue fairlease.queues)
returns void
language sql
set search_path = '', pg_temp
as $make$
  select fairlease.make_queue_function(
    p_queue, 'read(p_org text, p_n int, p_sleep_seconds int, p_now timestamptz)',
    'fairlease.delivery[]', $$
declare
  v_messages fairlease.delivery[];
begin
  with picked as materialized (
    select m.ctid as place, m.vt
    from {q} m
    where ({org}, m.vt) >= (p_org, '-infinity'::timestamptz) and ({org}, m.vt) <= (p_org, p_now)
    order by {org}, m.vt, m.msg_id
    limit p_n
    for update skip locked
  ), taken as (
    update {q} m
    set vt = p_now + make_interval(secs => p_sleep_seconds), read_ct = m.read_ct + 1{touch}
    from picked p
    where m.ctid = p.place
    returning m.msg_id, m.read_ct, m.enqueued_at, m.vt, m.message, {headers} as headers, p.vt as was
  )
  select array_agg(
    row(t.msg_id, t.read_ct, t.enqueued_at, t.vt, t.message, t.headers)::fairlease.delivery
    order by t.was, t.msg_id
  ) into v_messages
  from taken t;
  if v_messages is null then
    if exists (select from {q} m where {org} = p_org and m.vt <= p_now) then
      return '{}';
    end if;
  end if;
  return v_messages;
end;
$$)
$make$;

-- Walk on over the orgs in byte order, once around, until one may run that nobody else serves.
create or replace function fairlease.make_probe(p_queue fairlease.queues)
returns void
language sql
set search_path = '', pg_temp
as $make$
  select fairlease.make_queue_function(
    p_queue, 'probe(p_ask fairlease.claim_ask, p_at fairlease.rotation)', 'fairlease.rotation', $$
declare
  v_org text collate "C";
  v_vt timestamptz;
begin
  loop
    select {org}, m.vt into v_org, v_vt
    from {q} m
    where {org} > p_at.at_org
    order by {org}, m.vt, m.msg_id
    limit 1;
    if v_org is null and not p_at.wrapped and p_at.start_org <> '' then
      p_at.wrapped := true;
      p_at.at_org := '';
      continue;
    end if;
    if v_org is null or p_at.wrapped and v_org > p_at.start_org then
      p_at.complete := true;
      exit;
    end if;
    exit when p_at.probes_left = 0;
    p_at.at_org := v_org;
    p_at.probes_left := p_at.probes_left - 1;
    continue when v_vt > p_ask.asked_at;
    p_at.seen := true;
    p_at := fairlease.note_gate(p_at, fairlease.org_gate(v_org, p_ask));
    exit when p_at.found[cardinality(p_at.found)].others = 0
      and p_at.found[cardinality(p_at.found)].org = v_org;
  end loop;
  return p_at;
end;
$$)
$make$;

-- Remember an org that may run, or why it may not.
create or replace function fairlease.note_gate(p_at fairlease.rotation, p_gate fairlease.gate)
returns fairlease.rotation
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
begin
  if p_gate.cause is null then
    p_at.found := array_append(p_at.found, p_gate);
    return p_at;
  end if;
  return fairlease.note_cause(p_at, p_gate.cause, p_gate.retry_after_ms);
end;
$$;

-- The cause that a round reports is that of the org which is the first to be free again; where none
-- says when, that of the first met.
create or replace function fairlease.note_cause(
  p_at fairlease.rotation, p_cause text, p_retry_after_ms bigint
)
returns fairlease.rotation
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
begin
  if p_at.cause is null
    or p_retry_after_ms < coalesce(p_at.retry_after_ms, 9223372036854775807)
  then
    p_at.cause := p_cause;
    p_at.retry_after_ms := p_retry_after_ms;
  end if;
  return p_at;
end;
$$;

create or replace function fairlease.note_answer(
  p_at fairlease.rotation, p_answer fairlease.claim_answer
)
returns fairlease.rotation
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
begin
  return case
    when p_answer.status = 'org_capacity'
    then fairlease.note_cause(p_at, p_answer.cause, p_answer.retry_after_ms)
    else p_at
  end;
end;
$$;

revoke all on function
  fairlease.column_exists(text, text),
  fairlease.make_queue_function(fairlease.queues, text, text, text),
  fairlease.make_oldest(fairlease.queues),
  fairlease.make_visible(fairlease.queues),
  fairlease.make_read(fairlease.queues),
  fairlease.make_probe(fairlease.queues),
  fairlease.note_gate(fairlease.rotation, fairlease.gate),
  fairlease.note_cause(fairlease.rotation, text, bigint),
  fairlease.note_answer(fairlease.rotation, fairlease.claim_answer)
from public;

notify pgrst, 'reload schema';
