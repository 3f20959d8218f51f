-- What PostgREST knows of the functions of the exposed schemas ($1), and of the settings ($2) of
-- theirs that it applies to the whole transaction. Needs an empty search_path, so that every type
-- comes out qualified.
with recursive base_types (oid, base) as (
  select t.oid, t.oid from pg_catalog.pg_type t where t.typbasetype = 0
  union all
  select t.oid, b.base from pg_catalog.pg_type t join base_types b on b.oid = t.typbasetype
),
arguments as (
  select
    p.oid,
    jsonb_agg(
      jsonb_build_object(
        'name', coalesce(a.name, ''),
        'type', pg_catalog.format_type(a.type, null),
        -- json_to_record would cut the value to the length that these types have by default.
        'cast_type', case pg_catalog.format_type(a.type, null)
          when 'bit' then 'bit varying'
          when 'bit[]' then 'bit varying[]'
          when 'character' then 'character varying'
          when 'character[]' then 'character varying[]'
          else pg_catalog.format_type(a.type, null)
        end,
        'required', a.position <= p.pronargs - p.pronargdefaults,
        'variadic', coalesce(a.mode = 'v', false)
      ) order by a.position
    ) as parameters,
    case count(*) - count(a.name)
      when 0 then true
      when 1 then (array_agg(pg_catalog.format_type(a.type, null) order by a.position))[1]
        in ('bytea', 'json', 'jsonb', 'text', 'xml')
      else false
    end as callable
  from pg_catalog.pg_proc p
  cross join lateral unnest(p.proargnames, p.proargtypes::oid[], p.proargmodes)
    with ordinality as a (name, type, mode, position)
  where a.type is not null
    and p.pronamespace in (select n.oid from pg_catalog.pg_namespace n where n.nspname = any ($1))
  group by p.oid
)
select
  n.nspname as schema,
  p.proname as name,
  d.description,
  coalesce(a.parameters, '[]') as parameters,
  p.proretset as returns_set,
  t.typtype = 'c' or coalesce(p.proargmodes::text[] && '{t,b,o}', false) as returns_composite,
  coalesce(c.relname, t.typname) as return_type,
  p.provolatile::text as volatility,
  (
    select lower(pg_catalog.split_part(s.setting, '=', 2))
    from unnest(p.proconfig) as s (setting)
    where s.setting like 'default\_transaction\_isolation=%'
  ) as isolation_level,
  (
    select coalesce(jsonb_agg(array[s.name, s.value]), '[]')
    from unnest(p.proconfig) as u (setting)
    cross join lateral (
      select pg_catalog.split_part(u.setting, '=', 1),
        substr(u.setting, strpos(u.setting, '=') + 1)
    ) as s (name, value)
    where s.name = any ($2)
  ) as settings
from pg_catalog.pg_proc p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace
join base_types b on b.oid = p.prorettype
join pg_catalog.pg_type t on t.oid = b.base
left join pg_catalog.pg_class c on c.oid = t.typrelid and t.typrelid <> 0
left join arguments a on a.oid = p.oid
left join pg_catalog.pg_description d
  on d.objoid = p.oid and d.classoid = 'pg_catalog.pg_proc'::regclass and d.objsubid = 0
where n.nspname = any ($1)
  and p.prokind = 'f'
  and t.oid <> 'pg_catalog.trigger'::regtype
  and coalesce(a.callable, true)
