-- What workers may call, and nobody else. Run again after every change of a function's signature.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

do $$
declare
  v_function regprocedure;
begin
  for v_function in
    select p.oid::regprocedure
    from pg_catalog.pg_proc p
    where p.pronamespace = 'pgmq_public'::regnamespace
      and p.proname in (
        'claim_org_slot_and_read', 'renew_org_slot', 'release_org_slot', 'settle_and_claim',
        'heartbeat_org_slot', 'send_messages'
      )
  loop
    execute pg_catalog.format('revoke all on function %s from public', v_function);
    if pg_catalog.to_regrole('service_role') is not null then
      execute pg_catalog.format('grant execute on function %s to service_role', v_function);
    end if;
  end loop;
end;
$$;

notify pgrst, 'reload schema';
