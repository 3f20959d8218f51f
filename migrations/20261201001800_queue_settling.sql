-- What settling does to a queue's tables: functions of each queue, as its reads are.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- Locked in the order of their ids, waiting; what else is known of them is read in a later
-- statement, since a look again after a wait still sees a joined table as it was before.
create or replace function fairlease.make_lock(p_queue fairlease.queues)
returns void
language sql
set search_path = '', pg_temp
as $make$
  select fairlease.make_queue_function(
    p_queue, 'lock(p_ids bigint[])', 'fairlease.locked_message[]', $$
begin
  return array(
    select l.message
    from (select distinct u.id from unnest(p_ids) u (id) order by u.id) i
    cross join lateral (
      select row(
        m.msg_id, m.read_ct, m.enqueued_at, {read_at}, {org}
      )::fairlease.locked_message as message
      from {q} m {by_id}
      for update
    ) l
  );
end;
$$)
$make$;

create or replace function fairlease.make_orgs(p_queue fairlease.queues)
returns void
language sql
set search_path = '', pg_temp
as $make$
  select fairlease.make_queue_function(p_queue, 'orgs(p_ids bigint[])', 'text[]', $$
begin
  return array(
    select distinct l.org
    from unnest(p_ids) i (id)
    cross join lateral (select {org} as org from {q} m {by_id}) l
  );
end;
$$)
$make$;

-- Returns the ids that the archive already held.
create or replace function fairlease.make_archive(p_queue fairlease.queues)
returns void
language sql
set search_path = '', pg_temp
as $make$
  select fairlease.make_queue_function(
    p_queue, 'archive(p_queue text, p_ids bigint[], p_now timestamptz)', 'bigint[]', $$
declare
  v_held bigint[];
begin
  with gone as (
    delete from {q} m
    where m.ctid = any (array(select p.place from unnest(p_ids) i (id) {find}))
    returning m.msg_id, m.read_ct, m.enqueued_at, m.vt, m.message,
      {headers} as headers, {read_at} as last_read_at
  ), kept as (
    insert into {a} as a ({columns}, archived_at)
    select {columns}, p_now from gone
    on conflict do nothing
    returning a.msg_id
  ), held as (
    insert into fairlease.archive_conflicts as c (
      queue, msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers, moved_at
    )
    select p_queue, g.msg_id, g.read_ct, g.enqueued_at, g.last_read_at, g.vt, g.message,
      g.headers, p_now
    from gone g
    where not exists (select from kept k where k.msg_id = g.msg_id)
    returning c.msg_id
  )
  select array_agg(h.msg_id) into v_held from held h;
  return v_held;
end;
$$)
$make$;

-- What most outcomes are, in one go: archive the deliveries that are still theirs and not over.
-- Returns their ids. Locked first, so that what is known of them is read after any wait.
create or replace function fairlease.make_finish(p_queue fairlease.queues)
returns void
language sql
set search_path = '', pg_temp
as $make$
  select fairlease.make_queue_function(
    p_queue, 'finish(p_queue text, p_ids bigint[], p_cts int[], p_now timestamptz)', 'bigint[]', $$
declare
  v_theirs tid[];
  v_finished bigint[];
begin
  select array_agg(l.place) filter (where l.read_ct = i.ct) into v_theirs
  from (select u.id, u.ct from unnest(p_ids, p_cts) u (id, ct) order by u.id) i
  cross join lateral (
    select m.ctid as place, m.read_ct from {q} m {by_id} for update
  ) l;
  with gone as (
    delete from {q} m
    where m.ctid = any (v_theirs)
      and (
        select s.closed_read_ct from fairlease.message_state s
        where s.queue = p_queue and s.msg_id = m.msg_id and s.enqueued_at = m.enqueued_at
      ) is distinct from m.read_ct
    returning m.msg_id, m.read_ct, m.enqueued_at, m.vt, m.message,
      {headers} as headers, {read_at} as last_read_at
  ), kept as (
    insert into {a} as a ({columns}, archived_at)
    select {columns}, p_now from gone
    returning a.msg_id
  ), forgotten as (
    delete from fairlease.message_state s
    where s.queue = p_queue and s.msg_id = any (array(select k.msg_id from kept k))
  )
  select array_agg(k.msg_id) into v_finished from kept k;
  return v_finished;
end;
$$)
$make$;

create or replace function fairlease.make_delete(p_queue fairlease.queues)
returns void
language sql
set search_path = '', pg_temp
as $make$
  select fairlease.make_queue_function(p_queue, 'delete(p_ids bigint[])', 'void', $$
begin
  delete from {q} m
  where m.ctid = any (array(select p.place from unnest(p_ids) i (id) {find}));
end;
$$)
$make$;

create or replace function fairlease.make_reschedule(p_queue fairlease.queues)
returns void
language sql
set search_path = '', pg_temp
as $make$
  select fairlease.make_queue_function(
    p_queue, 'reschedule(p_ids bigint[], p_visible_at timestamptz[])', 'void', $$
begin
  update {q} m
  set vt = r.visible_at
  from (
    select p.place, i.visible_at from unnest(p_ids, p_visible_at) i (id, visible_at) {find}
  ) r
  where m.ctid = r.place;
end;
$$)
$make$;

create or replace function fairlease.make_bury(p_queue fairlease.queues)
returns void
language sql
set search_path = '', pg_temp
as $make$
  select fairlease.make_queue_function(
    p_queue,
    'bury(p_queue text, p_holder text, p_outcomes fairlease.outcome[], p_now timestamptz)',
    'void', $$
begin
  with gone as (
    delete from {q} m
    using (
      select p.place, i.attempt, i.reason, i.error, i.claimed_at from unnest(p_outcomes) i {find}
    ) o
    where m.ctid = o.place
    returning m.msg_id, m.read_ct, m.enqueued_at, m.message, {headers} as headers,
      {org} as org, o.attempt, o.reason, o.error, o.claimed_at
  )
  insert into fairlease.dead_letters (
    queue, org, msg_id, message, headers, enqueued_at, read_ct, attempts, reason, error,
    first_delivered_at, last_delivered_at, holder, died_at
  )
  select p_queue, g.org, g.msg_id, g.message, g.headers, g.enqueued_at, g.read_ct, g.attempt,
    coalesce(nullif(g.reason, ''), 'dead'), g.error,
    coalesce(s.first_delivered_at, g.claimed_at), g.claimed_at, p_holder, p_now
  from gone g
  cross join lateral fairlease.state_of(p_queue, g.msg_id, g.enqueued_at) s;
end;
$$)
$make$;

revoke all on function
  fairlease.make_lock(fairlease.queues),
  fairlease.make_orgs(fairlease.queues),
  fairlease.make_archive(fairlease.queues),
  fairlease.make_finish(fairlease.queues),
  fairlease.make_delete(fairlease.queues),
  fairlease.make_reschedule(fairlease.queues),
  fairlease.make_bury(fairlease.queues)
from public;

select fairlease.remake_queue_functions();

notify pgrst, 'reload schema';
