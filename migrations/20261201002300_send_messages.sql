-- Sending any number of messages in one round trip, with their orgs and keys.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

do $$
begin
  if pg_catalog.to_regtype('fairlease.new_message') is null then
    create type fairlease.new_message as (
      place int, msg_id bigint, message jsonb, headers jsonb, key text, existing boolean
    );
  end if;
end;
$$;

-- One message as its table takes it: the org in headers.x-org, or in the message where the table
-- has no headers; the key in the message.
create or replace function fairlease.parse_message(
  p_said jsonb, p_place int, p_queue fairlease.queues
)
returns fairlease.new_message
language plpgsql immutable
set search_path = '', pg_temp
as $$
declare
  v_new fairlease.new_message;
  v_is_object boolean := coalesce(jsonb_typeof(p_said -> 'message') = 'object', false);
  v_org text := nullif(p_said ->> 'org', '');
  v_where text := format('messages[%s]', p_place);
begin
  v_new.place := p_place;
  v_new.message := p_said -> 'message';
  v_new.headers := nullif(p_said -> 'headers', 'null');
  if v_new.message is null then
    raise exception '%: message is missing: pass {"message": ...}', v_where;
  elsif jsonb_typeof(v_new.headers) <> 'object' then
    raise exception '%: headers must be an object, got %', v_where, jsonb_typeof(v_new.headers);
  elsif nullif(p_said -> 'key', 'null') is not null and not v_is_object then
    raise exception '%: key needs a message that is an object: leave the key out', v_where;
  elsif v_org is not null and not p_queue.has_headers and not v_is_object then
    raise exception '%: org needs a message that is an object, since this queue has no headers: '
      'leave the org out', v_where;
  end if;
  if nullif(p_said ->> 'key', '') is not null then
    v_new.message := v_new.message || jsonb_build_object('key', p_said ->> 'key');
  end if;
  if p_queue.has_headers and v_org is not null then
    v_new.headers := coalesce(v_new.headers, '{}') || jsonb_build_object('x-org', v_org);
  elsif v_org is not null then
    v_new.message := v_new.message || jsonb_build_object('org', v_org);
  end if;
  v_new.key := v_new.message ->> 'key';
  if octet_length(v_new.key) > 512 then
    raise exception '%: key has % bytes: use at most 512', v_where, octet_length(v_new.key);
  elsif p_said ->> 'key' <> '' and not p_queue.unique_keys then
    raise exception '%: queue % does not keep keys unique: attach it with unique_keys => true, or '
      'leave the key out', v_where, quote_literal(p_queue.queue);
  end if;
  return v_new;
end;
$$;

create or replace function fairlease.parse_messages(p_said jsonb, p_queue fairlease.queues)
returns fairlease.new_message[]
language plpgsql immutable
set search_path = '', pg_temp
as $$
begin
  if coalesce(jsonb_typeof(p_said) <> 'array', true) then
    raise exception 'messages must be an array of {"message": ...}';
  elsif jsonb_array_length(p_said) > 10000 then
    raise exception 'messages must be at most 10000, got %: send the rest in a second call',
      jsonb_array_length(p_said);
  end if;
  return array(
    select fairlease.parse_message(e.value, e.place::int - 1, p_queue)
    from jsonb_array_elements(p_said) with ordinality e (value, place)
    order by e.place
  );
end;
$$;

-- Rows are inserted in the order of their keys, so that two senders of the same keys wait for each
-- other in one direction only. Returns the ids of the rows inserted.
create or replace function fairlease.make_insert(p_queue fairlease.queues)
returns void
language sql
set search_path = '', pg_temp
as $make$
  select fairlease.make_queue_function(
    p_queue, 'insert(p_messages fairlease.new_message[], p_visible_at timestamptz)', 'bigint[]',
    replace(replace(replace($$
declare
  v_inserted bigint[];
begin
  with placed as (
    insert into {q} as m (msg_id, vt, message{headers_column})
    overriding system value
    select n.msg_id, p_visible_at, n.message{headers_value}
    from unnest(p_messages) n
    order by md5(n.key), n.place
    {unless_live}
    returning m.msg_id
  )
  select array_agg(p.msg_id) into v_inserted from placed p;
  return coalesce(v_inserted, '{}');
end;
$$, '{headers_column}', case when p_queue.has_headers then ', headers' else '' end),
      '{headers_value}', case when p_queue.has_headers then ', n.headers' else '' end),
      '{unless_live}', case when p_queue.unique_keys then
        'on conflict (md5(message ->> ''key'')) where (message ->> ''key'') is not null do nothing'
        else '' end)
  )
$make$;

-- Each message with the id of the live one that bears its key; null where none does any more.
create or replace function fairlease.make_bearers(p_queue fairlease.queues)
returns void
language sql
set search_path = '', pg_temp
as $make$
  select fairlease.make_queue_function(
    p_queue, 'bearers(p_messages fairlease.new_message[])', 'fairlease.new_message[]', $$
begin
  return array(
    select row(n.place, (
        select m.msg_id from {q} m
        where md5(m.message ->> 'key') = md5(n.key) and (m.message ->> 'key') is not null
        limit 1
      ), n.message, n.headers, n.key, true)::fairlease.new_message
    from unnest(p_messages) n
  );
end;
$$)
$make$;

-- Ids drawn in the order of the messages: of one sender's messages, the first sent is first read.
create or replace function fairlease.number_messages(
  p_queue fairlease.queues, p_messages fairlease.new_message[]
)
returns fairlease.new_message[]
language sql volatile
set search_path = '', pg_temp
as $$
  select array(
    select row(n.place, nextval(s.name), n.message, n.headers, n.key, false)::fairlease.new_message
    from (select m.* from unnest(p_messages) m order by m.place) n,
      pg_get_serial_sequence(format('pgmq.%I', p_queue.table_name), 'msg_id') s (name)
  )
$$;

-- Insert what is new; a key that is live is answered with the message that bears it. Where that
-- message went between the two looks, its turn comes again.
create or replace function fairlease.send_all(
  p_queue fairlease.queues, p_messages fairlease.new_message[], p_visible_at timestamptz
)
returns fairlease.new_message[]
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_left fairlease.new_message[] := p_messages;
  v_sent fairlease.new_message[] := '{}';
  v_inserted bigint[];
begin
  for v_round in 1 .. 10 loop
    v_left := fairlease.number_messages(p_queue, v_left);
    execute format('select fairlease.q%s_insert($1, $2)', p_queue.id)
      into v_inserted using v_left, p_visible_at;
    if cardinality(v_inserted) = cardinality(v_left) then
      return v_sent || v_left;
    end if;
    v_sent := v_sent || array(
      select m from unnest(v_left) m join unnest(v_inserted) i on i = m.msg_id
    );
    v_left := array(
      select m from unnest(v_left) m left join unnest(v_inserted) i on i = m.msg_id where i is null
    );
    execute format('select fairlease.q%s_bearers($1)', p_queue.id) into v_left using v_left;
    v_sent := v_sent || array(select m from unnest(v_left) m where m.msg_id is not null);
    v_left := array(select m from unnest(v_left) m where m.msg_id is null);
    exit when cardinality(v_left) = 0;
  end loop;
  if cardinality(v_left) > 0 then
    raise exception using errcode = 'lock_not_available',
      message = 'send_messages: the messages that bear these keys come and go: call it again';
  end if;
  return v_sent;
end;
$$;

create or replace function pgmq_public.send_messages(
  queue_name text, messages jsonb, sleep_seconds int default 0
)
returns jsonb
language plpgsql volatile security definer
set search_path = '', pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_queue fairlease.queues;
  v_messages fairlease.new_message[];
begin
  if coalesce(sleep_seconds, -1) < 0 then
    raise exception 'sleep_seconds must be 0 or more, got %: pass the delay, 0 for none',
      coalesce(sleep_seconds::text, 'null');
  end if;
  v_queue := fairlease.attached(queue_name);
  v_messages := fairlease.send_all(
    v_queue, fairlease.parse_messages(messages, v_queue),
    fairlease.now_() + make_interval(secs => sleep_seconds)
  );
  return (
    select jsonb_build_object(
      'ids', coalesce(jsonb_agg(m.msg_id order by m.place), '[]'),
      'existing', coalesce(jsonb_agg(m.place order by m.place) filter (where m.existing), '[]')
    )
    from unnest(v_messages) m
  );
exception
  when deadlock_detected or serialization_failure then
    raise exception using errcode = 'lock_not_available',
      message = 'send_messages met a lock conflict: call it again';
  when invalid_column_reference then
    raise exception using errcode = 'lock_not_available',
      message = 'send_messages met a change of the queue''s rule for keys: call it again';
  when undefined_table or undefined_function then
    perform fairlease.raise_missing(queue_name, sqlerrm);
end;
$$;

revoke all on function
  fairlease.parse_message(jsonb, int, fairlease.queues),
  fairlease.parse_messages(jsonb, fairlease.queues),
  fairlease.make_insert(fairlease.queues),
  fairlease.make_bearers(fairlease.queues),
  fairlease.number_messages(fairlease.queues, fairlease.new_message[]),
  fairlease.send_all(fairlease.queues, fairlease.new_message[], timestamptz)
from public;

select fairlease.let_workers_call(array['send_messages']);

select fairlease.remake_queue_functions();

notify pgrst, 'reload schema';
