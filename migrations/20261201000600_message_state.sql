-- What pgmq cannot say about a message, and where messages go that leave their queue otherwise.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- A row exists only where a delivery ended and its message stayed, or where a delivery began after
-- one that never ended; deleted with the message.
create table if not exists fairlease.message_state (
  queue text not null,
  msg_id bigint not null,
  -- An id can come again after a restore: a row of another enqueued_at speaks of another message.
  enqueued_at timestamptz not null,
  closed_read_ct int,
  closed_count int not null default 0,
  uncounted int not null default 0,
  begun_read_ct int,
  begun_count int not null default 0,
  last_error text,
  first_delivered_at timestamptz,
  primary key (queue, msg_id)
) with (fillfactor = 70);
comment on column fairlease.message_state.closed_read_ct is 'The last delivery that was settled: equal to the message''s read_ct, it is over.';
comment on column fairlease.message_state.closed_count is 'Deliveries that were settled.';
comment on column fairlease.message_state.uncounted is 'Of these, snoozes and give-backs: read_ct less these is the attempt.';
comment on column fairlease.message_state.begun_count is 'Deliveries whose handler began and that never ended: the crashes.';

-- One message's state, all null where there is none. Looked up one by one: a join may be planned as
-- a look at all the state there is.
create or replace function fairlease.state_of(
  p_queue text, p_msg_id bigint, p_enqueued_at timestamptz
)
returns fairlease.message_state
language plpgsql stable
set search_path = '', pg_temp
as $$
declare
  v_state fairlease.message_state;
begin
  select * into v_state
  from fairlease.message_state s
  where s.queue = p_queue and s.msg_id = p_msg_id and s.enqueued_at = p_enqueued_at;
  return v_state;
end;
$$;

revoke all on function fairlease.state_of(text, bigint, timestamptz) from public;

create table if not exists fairlease.dead_letters (
  id bigint generated always as identity primary key,
  queue text not null,
  org text collate "C" not null,
  msg_id bigint not null,
  message jsonb,
  headers jsonb,
  enqueued_at timestamptz not null,
  read_ct int not null,
  attempts int not null,
  reason text not null,
  error text,
  first_delivered_at timestamptz,
  last_delivered_at timestamptz,
  holder text,
  died_at timestamptz not null
);
create index if not exists dead_letters_queue_idx on fairlease.dead_letters (queue, died_at);
create index if not exists dead_letters_org_idx on fairlease.dead_letters (queue, org);

create table if not exists fairlease.archive_conflicts (
  id bigint generated always as identity primary key,
  queue text not null,
  msg_id bigint not null,
  read_ct int not null,
  enqueued_at timestamptz not null,
  last_read_at timestamptz,
  vt timestamptz not null,
  message jsonb,
  headers jsonb,
  moved_at timestamptz not null
);
comment on table fairlease.archive_conflicts is 'Settled messages that their archive could not take: it held their id already, or was missing.';

notify pgrst, 'reload schema';
