-- What PostgREST knows of the functions of the exposed schemas ($1), and of the settings ($2) of
-- theirs that it applies to the whole transaction. Needs an empty search_path, so that every type
-- comes out qualified.
with recursive wanted as materialized (
  select n.nspname as schema, p.*
  from pg_catalog.pg_proc p
  join pg_catalog.pg_namespace n on n.oid = p.pronamespace
  where n.nspname = any ($1) and p.prokind = 'f'
),
-- A domain returns what it is a domain over.
base_types (declared, base, below) as (
  select distinct w.prorettype, w.prorettype, t.typbasetype
  from wanted w
  join pg_catalog.pg_type t on t.oid = w.prorettype
  union all
  select b.declared, b.below, t.typbasetype
  from base_types b
  join pg_catalog.pg_type t on t.oid = b.below
),
arguments as (
  select
    w.oid,
    jsonb_agg(
      jsonb_build_object(
        'name', coalesce(a.name, ''),
        'type', f.type,
        -- json_to_record would cut the value to the length that these types have by default.
        'cast_type', case f.type
          when 'bit' then 'bit varying'
          when 'bit[]' then 'bit varying[]'
          when 'character' then 'character varying'
          when 'character[]' then 'character varying[]'
          else f.type
        end,
        'required', a.position <= w.pronargs - w.pronargdefaults,
        'variadic', coalesce(a.mode = 'v', false)
      ) order by a.position
    ) as parameters,
    case count(*) - count(a.name)
      when 0 then true
      when 1 then (array_agg(f.type order by a.position))[1]
        in ('bytea', 'json', 'jsonb', 'text', 'xml')
      else false
    end as callable
  from wanted w
  cross join lateral unnest(w.proargnames, w.proargtypes::oid[], w.proargmodes)
    with ordinality as a (name, type, mode, position)
  cross join lateral (select pg_catalog.format_type(a.type, null)) as f (type)
  where a.type is not null
  group by w.oid
)
select
  w.schema,
  w.proname as name,
  pg_catalog.obj_description(w.oid, 'pg_proc') as description,
  coalesce(a.parameters, '[]') as parameters,
  w.proretset as returns_set,
  t.typtype = 'c' or coalesce(w.proargmodes::text[] && '{t,b,o}', false) as returns_composite,
  coalesce(c.relname, t.typname) as return_type,
  -- A domain that is named like a media type says what the function's text is.
  case
    when d.typbasetype <> 0 and d.typname ~* '^([a-z0-9.-]+/[a-z0-9.+-]+|\*/\*)$'
      then jsonb_build_array(m.nspname, d.typname)
  end as media_type,
  w.provolatile::text as volatility,
  (
    select lower(pg_catalog.split_part(s.setting, '=', 2))
    from unnest(w.proconfig) as s (setting)
    where s.setting like 'default\_transaction\_isolation=%'
  ) as isolation_level,
  (
    select coalesce(jsonb_agg(array[s.name, s.value]), '[]')
    from unnest(w.proconfig) as u (setting)
    cross join lateral (
      select pg_catalog.split_part(u.setting, '=', 1),
        substr(u.setting, strpos(u.setting, '=') + 1)
    ) as s (name, value)
    where s.name = any ($2)
  ) as settings
from wanted w
join base_types b on b.declared = w.prorettype and b.below = 0
join pg_catalog.pg_type t on t.oid = b.base
join pg_catalog.pg_type d on d.oid = w.prorettype
join pg_catalog.pg_namespace m on m.oid = d.typnamespace
left join pg_catalog.pg_class c on c.oid = t.typrelid and t.typrelid <> 0
left join arguments a on a.oid = w.oid
where t.oid <> 'pg_catalog.trigger'::regtype and coalesce(a.callable, true)
