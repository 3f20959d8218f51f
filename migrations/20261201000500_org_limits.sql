-- What operators decide about an org, and what a rate limit that the org met decides.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

create table if not exists fairlease.org_limits (
  org text collate "C" primary key check (org <> ''),
  max_per_org int check (max_per_org >= 0),
  starts_per_minute numeric check (starts_per_minute > 0 and starts_per_minute < 'infinity'),
  burst int not null default 1 check (burst >= 1),
  paused boolean not null default false,
  note text,
  tat numeric
) with (fillfactor = 50);
comment on column fairlease.org_limits.max_per_org is 'Slots of this org over all queues; replaces the claim''s argument; 0 takes none.';
comment on column fairlease.org_limits.starts_per_minute is 'Messages handed out per minute, over the whole fleet; null: as many as there are.';
comment on column fairlease.org_limits.burst is 'How many starts may come at once after a quiet time.';
comment on column fairlease.org_limits.tat is 'Theoretical arrival time of the next start, in seconds since 1970 times starts_per_minute: one start is exactly 60.';

create table if not exists fairlease.circuits (
  org text collate "C" primary key check (org <> ''),
  opened_at timestamptz,
  open_until timestamptz,
  closed_at timestamptz,
  trips int not null default 0,
  reason text,
  probe_queue text,
  probe_id bigint,
  probe_ct int,
  probe_until timestamptz
) with (fillfactor = 50);
comment on table fairlease.circuits is 'An org that met a rate limit. open_until null: closed; in the future: open; in the past: half open, one delivery (probe_*) decides.';
create index if not exists circuits_probe_idx on fairlease.circuits (probe_queue, probe_id)
  where probe_id is not null;

create index if not exists circuits_open_idx on fairlease.circuits (org)
  where open_until is not null;

create or replace function fairlease.fold_org_column()
returns trigger
language plpgsql
set search_path = '', pg_temp
as $$
begin
  new.org := fairlease.fold_org(new.org);
  return new;
end;
$$;

create or replace trigger fold_org before insert or update of org on fairlease.org_limits
  for each row execute function fairlease.fold_org_column();
create or replace trigger fold_org before insert or update of org on fairlease.circuits
  for each row execute function fairlease.fold_org_column();

-- A rate that changes keeps what the org owes: the same number of starts.
create or replace function fairlease.rebase_arrival_time()
returns trigger
language plpgsql
set search_path = '', pg_temp
as $$
declare
  v_epoch numeric := extract(epoch from fairlease.now_());
begin
  if new.starts_per_minute is distinct from old.starts_per_minute then
    new.tat := v_epoch * new.starts_per_minute
      + greatest(0, old.tat - v_epoch * old.starts_per_minute);
  end if;
  return new;
end;
$$;

create or replace trigger rebase_arrival_time
  before update of starts_per_minute on fairlease.org_limits
  for each row execute function fairlease.rebase_arrival_time();

revoke all on function
  fairlease.fold_org_column(),
  fairlease.rebase_arrival_time()
from public;

notify pgrst, 'reload schema';
