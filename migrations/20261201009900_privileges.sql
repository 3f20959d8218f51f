-- What workers may call, and nobody else. Run again after every change of a function's signature.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

select fairlease.let_workers_call(array[
  'claim_org_slot_and_read', 'renew_org_slot', 'release_org_slot', 'settle_and_claim',
  'heartbeat_org_slot', 'send_messages'
]);

notify pgrst, 'reload schema';
