-- The two schemas, and the clock that every function asks.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

do $$
declare
  v_version text := (select extversion from pg_catalog.pg_extension where extname = 'pgmq');
begin
  if pg_catalog.to_regclass('pgmq.meta') is null then
    raise exception 'this database has no pgmq: run "create extension pgmq" '
      '(on Supabase: Integrations, Queues), or install its SQL where there is no extension';
  end if;
  if v_version ~ '^\d+(\.\d+)*$'
    and pg_catalog.string_to_array(v_version, '.')::int[] < array[1, 4, 4]
  then
    raise exception 'pgmq % is too old, fairlease needs 1.4.4 or later: '
      'run "alter extension pgmq update"', v_version;
  end if;
end;
$$;

create schema if not exists fairlease;
revoke all on schema fairlease from public;

do $$
declare
  v_role text;
begin
  -- Default privileges may have let them in.
  foreach v_role in array array['anon', 'authenticated', 'service_role'] loop
    if pg_catalog.to_regrole(v_role) is not null then
      execute pg_catalog.format('revoke all on schema fairlease from %I', v_role);
    end if;
  end loop;
  if pg_catalog.to_regnamespace('pgmq_public') is null then
    create schema pgmq_public;
  end if;
  if pg_catalog.to_regrole('service_role') is not null then
    grant usage on schema pgmq_public to service_role;
  end if;
end;
$$;

-- Tests replace this function, which only its owner can, and so move time for every session.
create or replace function fairlease.now_()
returns timestamptz
language plpgsql volatile parallel safe
set search_path = '', pg_temp
as $$
begin
  return clock_timestamp();
end;
$$;

-- To be run by every migration that creates such a function: it may be called as soon as it exists.
create or replace function fairlease.let_workers_call(p_names text[])
returns void
language plpgsql
set search_path = '', pg_temp
as $$
declare
  v_function regprocedure;
  v_role text;
begin
  for v_function in
    select p.oid::regprocedure
    from pg_catalog.pg_proc p
    where p.pronamespace = 'pgmq_public'::regnamespace and p.proname = any (p_names)
  loop
    execute format('revoke all on function %s from public', v_function);
    -- Default privileges of the schema may have named them.
    foreach v_role in array array['anon', 'authenticated'] loop
      if to_regrole(v_role) is not null then
        execute format('revoke all on function %s from %I', v_function, v_role);
      end if;
    end loop;
    if to_regrole('service_role') is not null then
      execute format('grant execute on function %s to service_role', v_function);
    end if;
  end loop;
end;
$$;

revoke all on function
  fairlease.now_(),
  fairlease.let_workers_call(text[])
from public;

notify pgrst, 'reload schema';
