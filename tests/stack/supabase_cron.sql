-- pg_net and Vault as far as pokes need them. What pg_net's own worker does, PokeSender does: it
-- takes rows of the queue once they are committed, sends them over HTTP and keeps the answers.

create schema net authorization postgres;
create schema vault authorization postgres;
set role postgres;

create table net.http_request_queue (
  id bigserial,
  method text not null,
  url text not null,
  headers jsonb not null,
  body bytea,
  timeout_milliseconds int not null
);

create table net._http_response (
  id bigint,
  status_code integer,
  content text,
  timed_out bool,
  error_msg text,
  created timestamptz not null default now()
);

create function net.http_post(
  url text,
  body jsonb default '{}'::jsonb,
  params jsonb default '{}'::jsonb,
  headers jsonb default '{"Content-Type": "application/json"}'::jsonb,
  timeout_milliseconds int default 5000
)
returns bigint
language sql
as $$
  insert into net.http_request_queue (method, url, headers, body, timeout_milliseconds)
  values ('POST', http_post.url, http_post.headers, convert_to(http_post.body::text, 'UTF8'),
          http_post.timeout_milliseconds)
  returning id;
$$;

create function net.wake() returns trigger language plpgsql as $$
begin
  notify pg_net;
  return null;
end;
$$;

create trigger wake after insert on net.http_request_queue for each statement
  execute function net.wake();

create table vault.secrets (
  id uuid primary key default gen_random_uuid(),
  name text,
  description text not null default '',
  secret text not null
);
create unique index on vault.secrets (name) where name is not null;

-- Vault encrypts what this table has in clear; who reads sees the same.
create view vault.decrypted_secrets as
  select id, name, description, secret, secret as decrypted_secret from vault.secrets;

create function vault.create_secret(
  new_secret text, new_name text default null, new_description text default ''
)
returns uuid
language sql
as $$
  insert into vault.secrets (secret, name, description)
  values (new_secret, new_name, new_description) returning id;
$$;

create function vault.update_secret(
  secret_id uuid, new_secret text default null, new_name text default null
)
returns void
language sql
as $$
  update vault.secrets
  set secret = coalesce(new_secret, secret), name = coalesce(new_name, name)
  where id = secret_id;
$$;

reset role;
