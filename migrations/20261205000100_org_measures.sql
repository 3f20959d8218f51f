-- What an operator may know of the orgs of a queue: how much waits, how much runs, what holds it up.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

do $$
begin
  if pg_catalog.to_regtype('fairlease.org_measure') is null then
    create type fairlease.org_measure as (
      org text collate "C", ready bigint, running bigint, delayed bigint, oldest_due_at timestamptz
    );
  end if;
end;
$$;

-- Over the alias m of the queue's table, as the index on it has it.
create or replace function fairlease.org_expression(p_queue fairlease.queues)
returns text
language sql immutable
set search_path = '', pg_temp
as $$
  select format('(fairlease.org_of(m.message, %s) collate "C")',
    case when p_queue.has_headers then 'm.headers' else 'null::jsonb' end)
$$;

-- One row for each org that has messages, found by hopping along the index on (org, vt, msg_id).
-- Each count ends at `p_most`, so that one org's millions cost no more than a large org's.
create or replace function fairlease.measure_orgs(
  p_queue fairlease.queues, p_most int, p_now timestamptz
)
returns setof fairlease.org_measure
language plpgsql stable
set search_path = '', pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_org text := fairlease.org_expression(p_queue);
begin
  return query execute format($sql$
    with recursive hop as (
      (select %2$s as org from pgmq.%1$I m order by %2$s limit 1)
      union all
      select (select %2$s from pgmq.%1$I m where %2$s > h.org order by %2$s limit 1)
      from hop h where h.org is not null
    )
    select o.org, r.ready, h.running, h.hidden - h.running, r.oldest_due_at
    from hop o
    cross join lateral (
      select count(*) as ready, min(due.vt) as oldest_due_at
      from (
        select m.vt from pgmq.%1$I m where %2$s = o.org and m.vt <= $1
        order by %2$s, m.vt, m.msg_id limit $2
      ) due
    ) r
    cross join lateral (
      select count(*) as hidden, count(*) filter (
        where m.read_ct > 0 and m.read_ct is distinct from (
          select s.closed_read_ct from fairlease.message_state s
          where s.queue = $3 and s.msg_id = m.msg_id and s.enqueued_at = m.enqueued_at
        )
      ) as running
      from (
        select m.msg_id, m.read_ct, m.enqueued_at from pgmq.%1$I m
        where %2$s = o.org and m.vt > $1 order by %2$s, m.vt, m.msg_id limit $2
      ) m
    ) h
    where o.org is not null
  $sql$, p_queue.table_name, v_org) using p_now, p_most, p_queue.queue;
end;
$$;

-- Why messages of a queue may wait, as far as the database knows: {"slots", "orgs_paused",
-- "orgs_at_limit", "orgs_out_of_tokens"}. Orgs count that have a message which is due and a limit of
-- their own; what a claim passes as its caps is not known here.
create or replace function fairlease.measure_holdups(p_queue fairlease.queues, p_now timestamptz)
returns jsonb
language plpgsql stable
set search_path = '', pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_org text := fairlease.org_expression(p_queue);
  v_held jsonb;
begin
  execute format($sql$
    select jsonb_build_object(
      'slots', (
        select count(*) from fairlease.seats s where s.queue = $2 and s.expires_at > $1
      ),
      'orgs_paused', count(*) filter (where l.paused),
      'orgs_at_limit', count(*) filter (where l.max_per_org <= (
        select count(*) from fairlease.seats s where s.org = l.org and s.expires_at > $1
      )),
      'orgs_out_of_tokens', count(*) filter (
        where l.starts_per_minute is not null and fairlease.tokens(l, $1) < 1
      )
    )
    from fairlease.org_limits l
    where exists (select from pgmq.%1$I m where %2$s = l.org and m.vt <= $1)
  $sql$, p_queue.table_name, v_org) into v_held using p_now, p_queue.queue;
  return v_held;
end;
$$;

revoke all on function
  fairlease.org_expression(fairlease.queues),
  fairlease.measure_orgs(fairlease.queues, int, timestamptz),
  fairlease.measure_holdups(fairlease.queues, timestamptz)
from public;

notify pgrst, 'reload schema';
