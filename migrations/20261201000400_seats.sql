-- Slots: rows made once and taken with `skip locked`. An insert that conflicts would wait for the
-- other transaction's commit, which is a lock on the whole fleet in disguise.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

create table if not exists fairlease.seats (
  seat int primary key check (seat between 1 and 1024),
  holder text collate "C" unique,
  queue text,
  org text collate "C",
  ordinal int,
  expires_at timestamptz,
  taken_at timestamptz,
  claims int not null default 0,
  unique (org, ordinal),
  check (num_nulls(holder, queue, org, ordinal, expires_at, taken_at) in (0, 6))
) with (fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
comment on table fairlease.seats is 'A row with a holder and an expiry in the future is a live slot: the holder may run messages of the org.';
comment on column fairlease.seats.ordinal is 'Which of the org''s slots this is, over all queues.';

insert into fairlease.seats (seat)
select s from pg_catalog.generate_series(1, 1024) s
on conflict do nothing;

-- The holder's row, live or lapsed, locked; null when it has none. Waits for it.
create or replace function fairlease.own_slot(p_holder text)
returns fairlease.seats
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_slot fairlease.seats;
begin
  select * into v_slot from fairlease.seats s where s.holder = p_holder for update;
  return v_slot;
end;
$$;

-- One row per lease that ended, for who wants to know afterwards how the fleet spent its time.
create table if not exists fairlease.lease_log (
  id bigint generated always as identity primary key,
  queue text not null,
  org text collate "C" not null,
  holder text not null,
  taken_at timestamptz not null,
  ended_at timestamptz not null,
  why text not null check (why in ('released', 'repointed', 'lapsed', 'over_cap')),
  claims int not null
);
create index if not exists lease_log_ended_idx on fairlease.lease_log (ended_at);

-- True if there was a lease to log. (Boolean, so that a caller can assign it: plpgsql evaluates an
-- assignment in place, and sends a perform through the executor.)
create or replace function fairlease.log_lease(p_seat int, p_why text, p_now timestamptz)
returns boolean
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  insert into fairlease.lease_log (queue, org, holder, taken_at, ended_at, why, claims)
  select s.queue, s.org, s.holder, s.taken_at, least(s.expires_at, p_now),
    case when s.expires_at <= p_now then 'lapsed' else p_why end, s.claims
  from fairlease.seats s
  where s.seat = p_seat and s.holder is not null;
  return found;
end;
$$;

-- The caller holds the row's lock.
create or replace function fairlease.vacate(p_seat int, p_why text, p_now timestamptz)
returns void
language plpgsql volatile
set search_path = '', pg_temp
as $$
begin
  perform fairlease.log_lease(p_seat, p_why, p_now);
  update fairlease.seats
  set holder = null, queue = null, org = null, ordinal = null,
    expires_at = null, taken_at = null, claims = 0
  where seat = p_seat;
end;
$$;

revoke all on function
  fairlease.own_slot(text),
  fairlease.log_lease(int, text, timestamptz),
  fairlease.vacate(int, text, timestamptz)
from public;

notify pgrst, 'reload schema';
