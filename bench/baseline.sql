-- The design that the allocator replaces: one advisory lock around every claim, and a scan of the
-- visible backlog in every unpinned one. Same table, same indexes, same outcomes, own slot table.
create schema if not exists baseline;

create table if not exists baseline.slots (
  queue text not null,
  org text not null,
  holder text not null primary key,
  expires_at timestamptz not null
);
create index if not exists slots_org_idx on baseline.slots (org);

-- The org with visible work and room that has the fewest slots; the largest backlog among equals.
create or replace function baseline.pick_org(p_queue text, p_holder text, p_max_per_org int)
returns text
language plpgsql
as $$
declare
  v_org text;
begin
  execute format($sql$
    select b.org
    from (
      select fairlease.org_of(message, headers) as org, count(*) as waiting
      from pgmq.%I where vt <= clock_timestamp() group by 1
    ) b
    left join (
      select s.org, count(*) as held from baseline.slots s where s.holder <> $1 group by 1
    ) s on s.org = b.org
    where coalesce(s.held, 0) < $2
    order by coalesce(s.held, 0), b.waiting desc, b.org
    limit 1
  $sql$, 'q_' || p_queue) into v_org using p_holder, p_max_per_org;
  return v_org;
end;
$$;

create or replace function baseline.read_org(p_queue text, p_org text, p_vt int, p_n int)
returns bigint[]
language plpgsql
as $$
declare
  v_ids bigint[];
begin
  execute format($sql$
    with picked as (
      select msg_id from pgmq.%1$I
      where fairlease.org_of(message, headers) collate "C" = $1 and vt <= clock_timestamp()
      order by msg_id limit $2 for update skip locked
    ), taken as (
      update pgmq.%1$I m
      set vt = clock_timestamp() + %2$L, read_ct = read_ct + 1, last_read_at = clock_timestamp()
      from picked where m.msg_id = picked.msg_id returning m.msg_id
    )
    select array_agg(msg_id) from taken
  $sql$, 'q_' || p_queue, make_interval(secs => p_vt)) into v_ids using p_org, p_n;
  return v_ids;
end;
$$;

create or replace function baseline.claim(
  p_queue text, p_vt int, p_n int, p_holder text, p_ttl int, p_max_per_org int,
  p_global_cap int, p_pin_org text default null
)
returns table (org text, ids bigint[])
language plpgsql
as $$
declare
  v_held int;
begin
  perform pg_advisory_xact_lock(17331);
  delete from baseline.slots s where s.expires_at <= clock_timestamp();
  select count(*) into v_held from baseline.slots s where s.holder <> p_holder;
  if v_held >= p_global_cap then
    return;
  end if;
  org := coalesce(p_pin_org, baseline.pick_org(p_queue, p_holder, p_max_per_org));
  if org is null then
    return;
  end if;
  ids := baseline.read_org(p_queue, org, p_vt, p_n);
  if ids is null then
    return;
  end if;
  insert into baseline.slots values (
    p_queue, org, p_holder, clock_timestamp() + make_interval(secs => p_ttl)
  )
  on conflict (holder) do update
  set queue = excluded.queue, org = excluded.org, expires_at = excluded.expires_at;
  return next;
end;
$$;
