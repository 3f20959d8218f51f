-- The org of a message: the one place that defines it.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- The rule, for its twins in other languages:
-- 1. the first that is a non-empty text, each read as `->>` reads it (a number or boolean as its
--    JSON text, an object or array as jsonb prints it, null and absent as nothing):
--    headers.x-org, headers.x-pgmq-group, message.org, message.args.org, then what stands before
--    the first `/` (all of it, where there is none) of message.args.repository, and of
--    message.args.repository_full_name; else `(unresolved)`;
-- 2. A-Z become a-z, nothing else changes (no trimming, no normalisation);
-- 3. more than 200 bytes of UTF-8: as many whole characters as fit into 160 bytes, followed by
--    the hexadecimal md5 of the bytes of the whole folded text.
-- Examples: tests/sql/org_cases.json.
--
-- The index on a queue calls it as whoever sends, so it needs nothing but pg_catalog, and it must
-- never raise.
create or replace function fairlease.org_of(message jsonb, headers jsonb)
returns text
language plpgsql immutable parallel safe
set search_path = '', pg_temp
as $$
declare
  v_org text := lower(coalesce(
    nullif(headers ->> 'x-org', ''),
    nullif(headers ->> 'x-pgmq-group', ''),
    nullif(message ->> 'org', ''),
    nullif(message -> 'args' ->> 'org', ''),
    nullif(split_part(message -> 'args' ->> 'repository', '/', 1), ''),
    nullif(split_part(message -> 'args' ->> 'repository_full_name', '/', 1), ''),
    '(unresolved)'
  ) collate "C");
  v_head text;
begin
  if octet_length(v_org) <= 200 then
    return v_org;
  end if;
  v_head := left(v_org, 160);
  while octet_length(v_head) > 160 loop
    v_head := left(v_head, -1);
  end loop;
  return v_head || md5(v_org);
end;
$$;

-- An org that somebody names, as the rows of that org say it.
create or replace function fairlease.fold_org(p_org text)
returns text
language plpgsql immutable parallel safe strict
set search_path = '', pg_temp
as $$
begin
  return case
    when p_org = '' then ''
    else fairlease.org_of(null, jsonb_build_object('x-org', p_org))
  end;
end;
$$;

-- Senders of any role maintain the index. The schema stays closed: nobody can name the function.
grant execute on function fairlease.org_of(jsonb, jsonb) to public;
revoke all on function fairlease.fold_org(text) from public;

notify pgrst, 'reload schema';
