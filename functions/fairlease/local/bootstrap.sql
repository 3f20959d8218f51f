-- What an empty Supabase project has, as far as queues and their API need it. Run by the superuser,
-- as often as one likes. Passwords are set by the caller.

do $$
declare
  v_role text;
begin
  foreach v_role in array array['postgres', 'anon', 'authenticated', 'service_role', 'authenticator']
  loop
    if to_regrole(v_role) is null then
      execute format('create role %I', v_role);
    end if;
  end loop;
end;
$$;

alter role postgres login createdb createrole replication bypassrls;
alter role anon nologin noinherit;
alter role authenticated nologin noinherit;
alter role service_role nologin noinherit bypassrls;
alter role authenticator login noinherit;

alter role anon set statement_timeout = '3s';
alter role authenticated set statement_timeout = '8s';
alter role authenticator set statement_timeout = '8s';
alter role authenticator set lock_timeout = '8s';

grant anon, authenticated, service_role to authenticator;
grant anon, authenticated, service_role, authenticator to postgres with admin option;
grant pg_monitor, pg_read_all_data, pg_signal_backend to postgres with admin option;

do $$
begin
  execute format('alter database %I owner to postgres', current_database());
end;
$$;

create schema if not exists extensions authorization postgres;
grant usage on schema extensions to anon, authenticated, service_role;
grant usage on schema public to anon, authenticated, service_role;
grant all on schema public to postgres;

-- The schema that Supabase exposes for queues; its functions come with fairlease's migrations where
-- Supabase has not made them.
create schema if not exists pgmq_public authorization postgres;
grant usage on schema pgmq_public to anon, authenticated, service_role;

alter default privileges for role postgres in schema public
  grant all on tables to anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on sequences to anon, authenticated, service_role;
