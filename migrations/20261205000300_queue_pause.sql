-- Pausing a queue. Claims ask nothing more than before: a paused queue has functions that find no
-- work, in place of those that look for it.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

alter table fairlease.queues add column if not exists paused boolean not null default false;
comment on column fairlease.queues.paused is 'No claim gets a message of it; written by fairlease.pause_queue alone.';

-- Named to be made after `make_visible`, the last of those that it replaces. A claim is answered
-- `org_capacity`, cause `paused`, where messages are due, else `no_demand`; either sends its worker
-- on to the next queue. One that is pinned finds nothing, so a run ends its top-ups.
create or replace function fairlease.make_without_work(p_queue fairlease.queues)
returns void
language plpgsql
set search_path = '', pg_temp
as $make$
begin
  if not p_queue.paused then
    return;
  end if;
  perform fairlease.make_queue_function(p_queue, 'oldest(p_now timestamptz)', 'text',
    'begin return null; end;');
  perform fairlease.make_queue_function(p_queue, 'visible(p_org text, p_now timestamptz)',
    'boolean', 'begin return false; end;');
  perform fairlease.make_queue_function(p_queue,
    'read(p_org text, p_n int, p_sleep_seconds int, p_now timestamptz)', 'fairlease.delivery[]',
    'begin return null; end;');
  perform fairlease.make_queue_function(
    p_queue, 'probe(p_ask fairlease.claim_ask, p_at fairlease.rotation)', 'fairlease.rotation', $$
begin
  p_at.complete := true;
  if exists (select from {q} m where m.vt <= p_ask.asked_at) then
    p_at.seen := true;
    p_at.cause := 'paused';
  end if;
  return p_at;
end;
$$);
end;
$make$;

-- False if it was so already. What runs goes on, is settled and may be extended; sends go on too.
create or replace function fairlease.pause_queue(queue_name text, paused boolean default true)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_queue fairlease.queues;
begin
  perform pg_advisory_xact_lock(hashtextextended('fairlease.attach', 0));
  v_queue := fairlease.attached(queue_name);
  if v_queue.paused = pause_queue.paused then
    return false;
  end if;
  update fairlease.queues q set paused = pause_queue.paused where q.id = v_queue.id
  returning q.* into v_queue;
  perform fairlease.make_queue_functions(v_queue);
  return true;
end;
$$;

revoke all on function
  fairlease.make_without_work(fairlease.queues),
  fairlease.pause_queue(text, boolean)
from public;

select fairlease.remake_queue_functions();

notify pgrst, 'reload schema';
