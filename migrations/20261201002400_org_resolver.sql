-- An app that must look an org up names its own function for the queue. It is called once, when the
-- message is sent, and its answer is stamped on the message.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- What the resolver says, null or '' if it does not know. One that raises must not fail the sender.
create or replace function fairlease.resolve_org(
  p_queue fairlease.queues, p_message jsonb, p_headers jsonb
)
returns text
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_name text := p_queue.resolver::oid::regproc;
  v_both boolean;
  v_org text;
begin
  select p.pronargs = 2 into v_both from pg_catalog.pg_proc p where p.oid = p_queue.resolver;
  if v_both then
    execute format('select %s($1, $2)', v_name) into v_org using p_message, p_headers;
  else
    execute format('select %s($1)', v_name) into v_org using p_message;
  end if;
  return v_org;
exception when others then
  raise warning 'the org resolver of queue % failed (%): the message waits as (unresolved)',
    quote_literal(p_queue.queue), sqlerrm;
  return '(unresolved)';
end;
$$;

-- Runs as its owner: senders need no right to what the resolver reads.
create or replace function fairlease.stamp_org()
returns trigger
language plpgsql volatile security definer
set search_path = '', pg_temp
set jit = off
as $$
declare
  v_queue fairlease.queues;
  v_row jsonb := to_jsonb(new);
  v_org text;
begin
  select * into v_queue from fairlease.queues q where q.id = tg_argv[0]::int;
  if v_queue.resolver is null
    or not v_queue.resolver_overrides and coalesce(
      case when v_queue.has_headers then v_row -> 'headers' ->> 'x-org'
      else new.message ->> 'org' end, '') <> ''
  then
    return new;
  end if;
  v_org := fairlease.resolve_org(v_queue, new.message, v_row -> 'headers');
  if coalesce(v_org, '') = '' then
    return new;
  end if;
  if v_queue.has_headers then
    new.headers := case when jsonb_typeof(new.headers) = 'object' then new.headers else '{}' end
      || jsonb_build_object('x-org', v_org);
  elsif jsonb_typeof(new.message) = 'object' then
    new.message := new.message || jsonb_build_object('org', v_org);
  end if;
  return new;
end;
$$;

-- To take a resolver away: set it to null in fairlease.queues and attach the queue again.
create or replace function fairlease.make_stamp(p_queue fairlease.queues)
returns void
language plpgsql
set search_path = '', pg_temp
as $$
begin
  -- Where it is, it is right: to make it again would wait for every transaction that has sent, and
  -- let no other send meanwhile, only to pause the queue or to migrate.
  if p_queue.resolver is null or exists (
    select from pg_catalog.pg_trigger t
    where t.tgrelid = to_regclass(format('pgmq.%I', p_queue.table_name))
      and t.tgname = 'fairlease_org' and t.tgenabled <> 'D'
  ) then
    return;
  end if;
  execute format(
    'create or replace trigger fairlease_org before insert on pgmq.%I '
    'for each row execute function fairlease.stamp_org(%L)', p_queue.table_name, p_queue.id
  );
end;
$$;

revoke all on function
  fairlease.resolve_org(fairlease.queues, jsonb, jsonb),
  fairlease.stamp_org(),
  fairlease.make_stamp(fairlease.queues)
from public;

select fairlease.remake_queue_functions();

notify pgrst, 'reload schema';
